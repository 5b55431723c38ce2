/** The codes of errors of the system and of libraries, such as `ENOENT` or `SQLITE_BUSY`. Pure. */

/** Undefined for anything but an error with a code. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/** Whether the error says that there is no file or folder of that path. */
export function isMissingFile(error: unknown): boolean {
  const code = errorCode(error)
  return code === 'ENOENT' || code === 'ENOTDIR'
}
