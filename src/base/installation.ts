import { join, relative, resolve } from 'node:path'
import { EXIT_STATUS, errorCode, StopError } from './errors.ts'

/** The root folder of the clone or of the installed package. */
export const INSTALLATION = resolve(import.meta.dirname, '../..')

/** The path of a page that comes with parley, by which a person in the working directory can open it. */
export function pagePath(page: string): string {
  const path = join(INSTALLATION, page)
  const fromHere = relative(process.cwd(), path)
  // In the folder / every path is below it, and one without its first / would look like that of a clone.
  return fromHere.startsWith('..') || path === `/${fromHere}` ? path : fromHere
}

/**
 * Reads a file or folder that comes with parley. Without this function, a failed read would be reported as an error of
 * the database.
 * @throws StopError (exit status 1) when the file or folder is missing, unreadable or damaged
 */
export function readInstalled<T>(path: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    const code = errorCode(error) ?? (error instanceof SyntaxError ? error.name : undefined)
    if (code === undefined) throw error
    throw new StopError(`The installation of parley is broken: cannot read ${path} (${code})`, {
      code: 'installation-broken',
      hint: 'Install parley again, with its folder drizzle next to dist.',
      cause: error,
      exitStatus: EXIT_STATUS.fault,
    })
  }
}
