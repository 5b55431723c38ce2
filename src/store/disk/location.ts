import { existsSync, lstatSync, readFileSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { EXIT_STATUS, StopError } from '../../base/errors.ts'

/** Where a database is: its path, what is mounted there, and which file it is. */

/**
 * The path without symbolic links, so that every path to a database leads to the same lock file. A link may lead to a
 * file that is yet to be created.
 */
export function resolvedPath(path: string, linksBefore = 0): string {
  const file = resolve(path)
  try {
    if (existsSync(file)) return realpathSync(file)
    const folder = realpathSync(dirname(file))
    const place = join(folder, basename(file))
    const isLink = lstatSync(place, { throwIfNoEntry: false })?.isSymbolicLink() === true
    if (!isLink || linksBefore >= MOST_LINKS) return place
    return resolvedPath(resolve(folder, readlinkSync(place)), linksBefore + 1)
  } catch {
    // Opening the file reports what is wrong with its folder.
    return file
  }
}

/** Linux follows no more links in one path. */
const MOST_LINKS = 40

export interface FileSystem {
  mountPoint: string
  /** As mount(8) shows it, such as `ext4` or `nfs4`. */
  type: string
}

/**
 * Whether this path is a mount point. The device numbers of file and folder are not enough to decide: a bind mount
 * within one file system has the same device, and on an overlay every file has another device than its folder.
 * @param mountinfo text of `/proc/self/mountinfo`
 */
export const isMountPoint = (path: string, mountinfo: string): boolean =>
  mounts(mountinfo).some(({ mountPoint }) => mountPoint === path)

/**
 * The file system of a path without symbolic links; undefined where the system does not show file systems. statfs(2)
 * would return a number that is the same for all versions of NFS and for everything that FUSE mounts.
 * @param mountinfo text of `/proc/self/mountinfo`
 */
export function fileSystemOf(path: string, mountinfo = mountTable()): FileSystem | undefined {
  const around = mounts(mountinfo).filter(({ mountPoint }) =>
    `${path}/`.startsWith(mountPoint.replace(/\/?$/, '/')),
  )
  // Of two mounts on one mount point, the later one covers the earlier.
  return around.reduce<FileSystem | undefined>(
    (found, next) => (found && found.mountPoint.length > next.mountPoint.length ? found : next),
    undefined,
  )
}

/** File systems of other machines, or of programs. Several of these have no locks or no shared memory. */
const SHARES =
  /^(nfs4?|cifs|smb3?|smbfs|9p|virtiofs|fakeowner|fuse(\..+)?|afs|ceph|coda|davfs|glusterfs|lustre|beegfs|vboxsf|vmhgfs|prl_fs)$/

/** @returns the type of the path's file system; undefined for a local disk */
export function shareOf(path: string): string | undefined {
  const type = fileSystemOf(resolvedPath(path))?.type
  return type !== undefined && SHARES.test(type) ? type : undefined
}

export const SHARE_ADVICE =
  "SQLite's write-ahead log needs a local disk: keep the database there, and give snapshots or publications to others."

/** The lines of mountinfo, see proc_pid_mountinfo(5). A varying number of fields precedes the `-` before the type. */
function mounts(mountinfo: string): FileSystem[] {
  return mountinfo.split('\n').flatMap(line => {
    const [, mountPoint, type] = /^(?:\S+ ){4}(\S+) .*? - (\S+) /.exec(line) ?? []
    return mountPoint === undefined || type === undefined ? [] : [{ mountPoint: unescaped(mountPoint), type }]
  })
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

/** Device and inode of a file. They stay the same when the file is renamed. */
export interface FileIdentity {
  dev: number
  ino: number
}

export function identityOf(file: string): FileIdentity | undefined {
  const stats = statSync(file, { throwIfNoEntry: false })
  return stats && { dev: stats.dev, ino: stats.ino }
}

export const isSameFile = (one: FileIdentity | undefined, other: FileIdentity | undefined): boolean =>
  one !== undefined && one.dev === other?.dev && one.ino === other.ino

export type FileWatch = ReturnType<typeof watchFile>

const CHECK_INTERVAL_MS = 1000

/**
 * Detects that an open database file or its `-wal` was moved or replaced. SQLite would go on writing to the moved file,
 * and readers that open the path would not see these writes. SQLite creates the `-wal` at the first read, and keeps it
 * as long as a connection is open: call this after the first read.
 * @param emptyWal moves the content of a removed `-wal` into the database. False while a reader prevents that: closing
 *   the database would then lose commits, so the removed file stays in use until a later check
 */
export function watchFile(file: string, { elapsed }: Pick<Clock, 'elapsed'>, emptyWal: () => boolean) {
  const opened = identityOf(file)
  const walFile = `${file}-wal`
  const wal = identityOf(walFile)
  const isMoved = () => !isSameFile(opened, identityOf(file))
  let checkedAt = elapsed()
  return {
    /**
     * Whether the database was moved; not its `-wal`. True as well when this process may no longer search a folder of
     * the path: it then leads to no file.
     */
    isMoved() {
      try {
        return isMoved()
      } catch {
        return true
      }
    },
    /**
     * Checks at most once a second.
     * @throws StopError (73) when the path of one of the two files names another file or none
     */
    requireUnmoved() {
      if (elapsed() - checkedAt < CHECK_INTERVAL_MS) return
      if (isMoved()) throw movedError(file)
      // A `-wal` that was removed before the watch began has no identity, and equals none.
      if (!isSameFile(wal, identityOf(walFile)) && emptyWal()) throw movedError(walFile, WAL_HINT)
      checkedAt = elapsed()
    },
  }
}

/** @throws StopError (73) when there is no file at this path */
export function requireStillThere(file: string): void {
  if (identityOf(file) === undefined) throw movedError(file)
}

const MOVED_HINT =
  'Make sure that the right database is at this path. Stop parley before you move a database.'

const WAL_HINT =
  'Leave the -wal and -shm files to SQLite. No commit is lost: parley has moved them into the database.'

function movedError(file: string, hint = MOVED_HINT): StopError {
  return new StopError(`${file} was moved, deleted or replaced while parley was using it`, {
    code: 'database-moved',
    hint,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}
