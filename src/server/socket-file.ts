import { lstat, stat, unlink } from 'node:fs/promises'
import { connect } from 'node:net'
import { dirname } from 'node:path'

/** Linux keeps no more of a socket's path, and Node would cut off the rest without a word. */
const LONGEST_PATH = 107

/**
 * Makes way for a socket: removes one that a dead process left behind.
 * @returns the system's code for why nobody can listen there, or undefined when the way is free
 */
export async function clearSocketPath(path: string): Promise<string | undefined> {
  if (Buffer.byteLength(path) > LONGEST_PATH) return 'ENAMETOOLONG'
  // Node would call a folder that is not there one that may not be written to.
  const folder = await stat(dirname(path)).catch(codeOf)
  if (typeof folder === 'string') return folder
  const found = await lstat(path).catch(codeOf)
  if (typeof found === 'string') return found === 'ENOENT' ? undefined : found
  if (!found.isSocket()) return 'EEXIST'
  const answer = await knock(path)
  if (answer === undefined) return 'EADDRINUSE'
  if (answer !== 'ECONNREFUSED') return answer
  return unlink(path).then(() => undefined, codeOf)
}

/** Undefined when somebody answers, else the code of what went wrong. */
function knock(path: string): Promise<string | undefined> {
  return new Promise(resolve => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(undefined)
    })
    socket.once('error', error => resolve(codeOf(error)))
  })
}

/** @throws what is given, when it is no error of the system */
export function codeOf(error: unknown): string {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code
  throw error
}
