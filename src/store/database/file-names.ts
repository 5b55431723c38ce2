import { readFileSync, statSync } from 'node:fs'
import { EXIT_STATUS, StopError } from '../../errors.ts'

/**
 * SQLite finds the `-wal` and `-shm` of a database by its name, and parley its `-lock`. A file with two names has each
 * of them twice, so that two processes could write it at the same time.
 * @param file its path without symbolic links
 * @throws StopError (73) when the file has another name
 */
export function refuseSecondName(file: string): void {
  const names = statSync(file, { throwIfNoEntry: false })?.nlink ?? 1
  if (names > 1) {
    throw secondName(
      `${file} has ${names} names (hard links), expected one`,
      `Keep one name: find the others with find / -xdev -samefile ${file} and remove them.`,
    )
  }
  if (isMountPoint(file, mountTable())) {
    throw secondName(
      `${file} is mounted as a single file, so its -wal and -lock are not those of the original`,
      'Mount the folder that holds the database instead of the file.',
    )
  }
}

function secondName(message: string, hint: string): StopError {
  return new StopError(message, {
    code: 'database-second-name',
    hint,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}

/**
 * Whether something is mounted at this path, by the text of `/proc/self/mountinfo` (proc_pid_mountinfo(5)). Comparing
 * the devices of file and folder would not tell: a bind mount within one file system has the same, and on an overlay
 * they differ for every file.
 */
export function isMountPoint(path: string, mountinfo: string): boolean {
  return mountinfo.split('\n').some(line => unescaped(line.split(' ')[4] ?? '') === path)
}

/** Blanks, tabs, line ends and backslashes are written as three octal digits. */
function unescaped(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))
}

function mountTable(): string {
  try {
    return readFileSync('/proc/self/mountinfo', 'utf8')
  } catch {
    // Only Linux has it.
    return ''
  }
}
