import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

/** Where a database is: its path, and what is mounted there. */

/** The path without symbolic links, so that every path to a database leads to the same lock file. */
export function resolvedPath(path: string): string {
  const file = resolve(path)
  try {
    return existsSync(file) ? realpathSync(file) : join(realpathSync(dirname(file)), basename(file))
  } catch {
    // Opening the file reports what is wrong with its folder.
    return file
  }
}

/**
 * Whether this path is a mount point. The device numbers of file and folder are not enough to decide: a bind mount
 * within one file system has the same device, and on an overlay every file has another device than its folder.
 * @param mountinfo text of `/proc/self/mountinfo`, see proc_pid_mountinfo(5)
 */
export function isMountPoint(path: string, mountinfo: string): boolean {
  return mountinfo.split('\n').some(line => unescaped(line.split(' ')[4] ?? '') === path)
}

/** mountinfo writes a space, tab, line feed or backslash as a backslash and three octal digits. */
function unescaped(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))
}

export function mountTable(): string {
  try {
    return readFileSync('/proc/self/mountinfo', 'utf8')
  } catch {
    // Only Linux has this file.
    return ''
  }
}
