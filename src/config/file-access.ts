import { existsSync, lstatSync, realpathSync, type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { isMissingFile } from '../base/errors.ts'

/** Decides who may read and change a file. */

export interface User {
  uid: number
  gid: number
}

/** The user of this process; undefined on a system without numbers of users. */
function currentUser(): User | undefined {
  const [uid, gid] = [process.geteuid?.(), process.getegid?.()]
  return uid === undefined || gid === undefined ? undefined : { uid, gid }
}

type Ownership = Pick<Stats, 'uid' | 'gid' | 'mode'>

const [FILE_TYPE, FOLDER, LINK, DEVICE] = [0o170000, 0o040000, 0o120000, 0o020000]

/**
 * Why somebody other than this user and root may change what is at a path; undefined when no one else may. In a folder
 * with the sticky bit, others may add files but change none. A group with the number of the user is the user's own, as
 * on systems with a umask of 002. A device is no risk: what others write to a terminal or to `/dev/null` is not read
 * here. Pure.
 */
export function changeRisk({ uid, gid, mode }: Ownership, user: User): string | undefined {
  if (uid !== user.uid && uid !== 0) return 'belongs to another user'
  if ([LINK, DEVICE].includes(mode & FILE_TYPE)) return undefined
  if ((mode & FILE_TYPE) === FOLDER && (mode & 0o1000) !== 0) return undefined
  if ((mode & 0o002) !== 0) return 'can be changed by every user'
  const isOwnGroup = user.uid !== 0 && gid === user.gid && gid === user.uid
  return (mode & 0o020) !== 0 && !isOwnGroup ? 'can be changed by its group' : undefined
}

/**
 * Checks the file, its folders up to `within`, and what these link to.
 * @returns the first of these paths that somebody else may change, with the reason
 * @param within by default the folder of the file
 */
export function foreignAccess(
  file: string,
  within = dirname(file),
  user = currentUser(),
): string | undefined {
  if (user === undefined) return undefined
  const real = realPath(file)
  const folders = [...foldersUpTo(within, file), ...(real === undefined ? [] : [dirname(real)])]
  const places = new Map([file, ...folders].map(path => [path, lstatSync(path)]))
  for (const [path, ownership] of [...places, [real ?? file, statSync(file)] as const]) {
    const risk = changeRisk(ownership, user)
    if (risk !== undefined) return `${path} ${risk}`
  }
  return undefined
}

/** The path with all links resolved; undefined for a file without a path, such as the pipe of `--config <(command)`. */
function realPath(file: string): string | undefined {
  try {
    return realpathSync(file)
  } catch (error) {
    if (!isMissingFile(error)) throw error
    return undefined
  }
}

/**
 * Whether the file, or the link to it, belongs to somebody else than this user and root. False when there is no file.
 */
export function isForeign(path: string, user = currentUser()): boolean {
  if (user === undefined || !existsSync(path)) return false
  return [lstatSync(path), statSync(path)].some(({ uid }) => uid !== user.uid && uid !== 0)
}

function foldersUpTo(top: string, path: string): string[] {
  const folder = dirname(path)
  return folder === top || folder === path ? [folder] : [folder, ...foldersUpTo(top, folder)]
}

/** Whether the group or others may read or change the file. */
export const isOpenToOthers = (path: string): boolean => (statSync(path).mode & 0o066) !== 0
