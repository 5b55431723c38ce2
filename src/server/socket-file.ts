import { lstat, stat, unlink } from 'node:fs/promises'
import { connect } from 'node:net'
import { dirname } from 'node:path'
import { errorCode } from '../base/error-code.ts'

/** The limit of Linux for a socket's path. Node would cut a longer path without an error. */
const MAX_PATH_BYTES = 107

/**
 * Removes a socket file that a dead process left at the path.
 * @returns the system error code when no process can listen there; undefined when the path is free
 */
export async function clearSocketPath(path: string): Promise<string | undefined> {
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) return 'ENAMETOOLONG'
  // The folder is checked first, since Node reports EACCES for a missing folder.
  const folder = await stat(dirname(path)).catch(codeOf)
  if (typeof folder === 'string') return folder
  const found = await lstat(path).catch(codeOf)
  if (typeof found === 'string') return found === 'ENOENT' ? undefined : found
  if (!found.isSocket()) return 'EEXIST'
  const answer = await connectError(path)
  if (answer === undefined) return 'EADDRINUSE'
  if (answer !== 'ECONNREFUSED') return answer
  return unlink(path).then(() => undefined, codeOf)
}

/** The error code of a connection attempt; undefined when a process accepts the connection. */
function connectError(path: string): Promise<string | undefined> {
  return new Promise(resolve => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(undefined)
    })
    socket.once('error', error => resolve(codeOf(error)))
  })
}

/** @throws the error itself when it is not a system error */
export function codeOf(error: unknown): string {
  const code = errorCode(error)
  if (code === undefined) throw error
  return code
}
