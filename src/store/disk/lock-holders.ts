import { readdirSync, readFileSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import { resolvedPath } from './location.ts'

/**
 * Finds the processes that hold the locks of a database in /proc/locks. Trying a lock would make a process fail that
 * starts at that moment.
 */

export interface LockHolder {
  pid: number
  /** PID of the parent process; undefined when this user may not see it. */
  parent: number | undefined
  /** The program, such as `sqlite3` or `python3 report.py`; undefined when this user may not see it. */
  program: string | undefined
  /** Ends the sentence `The process is …`. */
  state: string
  /** True for a process that goes on only after someone has continued it. */
  isHalted: boolean
}

/** A range of bytes of a file of the database. SQLite locks single bytes, which need not exist (os.h, wal.c). */
interface LockedBytes {
  /** The ending that follows the name of the database in the name of the file. */
  end: string
  first: number
  last: number
  /** Whether a shared lock counts too. Otherwise only an exclusive lock counts. */
  byReaders: boolean
}

const PENDING_BYTE = 0x40000000
const RESERVED_BYTE = PENDING_BYTE + 1
const LAST_SHARED_BYTE = PENDING_BYTE + 511
const DATABASE_BYTES = { end: '', first: PENDING_BYTE, last: LAST_SHARED_BYTE }

const LOCKS = {
  /** The lock of the one process that may write the warehouse (`lock.ts`). */
  writer: [{ end: '-lock', first: RESERVED_BYTE, last: RESERVED_BYTE, byReaders: true }],
  /** SQLite's lock for a transaction that writes, and the exclusive lock on the whole database. */
  writing: [
    { end: '-shm', first: 120, last: 120, byReaders: true },
    { ...DATABASE_BYTES, byReaders: false },
  ],
  /** SQLite's locks for transactions that read. They keep the WAL from being reused. */
  reading: [{ end: '-shm', first: 123, last: 127, byReaders: true }],
  /** The shared lock that every connection holds from its first read until it is closed. */
  open: [{ ...DATABASE_BYTES, byReaders: true }],
} as const satisfies Readonly<Record<string, readonly LockedBytes[]>>

/**
 * @returns the processes that hold a lock of a database, without those of other containers; undefined where the system
 * does not show locks
 *
 * Only the inode is compared, not the device: btrfs and overlayfs show the device differently in /proc/locks.
 */
export function lockHolders(database: string, kind: keyof typeof LOCKS): readonly LockHolder[] | undefined {
  let locks: string
  try {
    locks = readFileSync('/proc/locks', 'utf8')
  } catch {
    return undefined
  }
  const path = resolvedPath(database)
  const pids = LOCKS[kind].flatMap(({ end, ...bytes }) => {
    const stats = statSync(`${path}${end}`, { throwIfNoEntry: false, bigint: true })
    return stats ? pidsIn(locks, { inode: `${stats.ino}`, ...bytes }) : []
  })
  return [...new Set(pids)].map(holderOf)
}

/** As `lockHolders`, without this process: the processes that it has to wait for. */
export const otherHolders = (database: string, kind: keyof typeof LOCKS): readonly LockHolder[] =>
  (lockHolders(database, kind) ?? []).filter(({ pid }) => pid !== process.pid)

/** How long a program holds the lock before it is reported, and how often that is looked at: transactions are short. */
const LONG_HELD_MS = 1000
const LOOK_MS = 20

/**
 * The programs that keep the writer of a warehouse from writing: they hold SQLite's lock for writing, and for a second
 * already. The writer is left out: it holds that lock for a moment at each commit. Takes that second only where there is
 * such a program.
 * @param blockedMs for a writer, which knows for how long its own commit waits, and must not wait a second for this
 */
export function longWriters(database: string, blockedMs?: number): readonly LockHolder[] {
  if (blockedMs !== undefined && blockedMs < LONG_HELD_MS) return []
  const writers = (lockHolders(database, 'writer') ?? []).map(({ pid }) => pid)
  let found = otherHolders(database, 'writing').filter(({ pid }) => !writers.includes(pid))
  for (let waited = blockedMs ?? 0; found.length > 0 && waited < LONG_HELD_MS; waited += LOOK_MS) {
    pauseThread(LOOK_MS)
    const still = otherHolders(database, 'writing')
    found = still.filter(({ pid }) => found.some(earlier => earlier.pid === pid))
  }
  return found
}

/** Another process that holds the lock of the writer and is stopped. */
export const haltedWriter = (database: string): LockHolder | undefined =>
  otherHolders(database, 'writer').find(({ isHalted }) => isHalted)

/**
 * Another process that holds the lock of the writer and writes nothing: it is stopped, or it does not have this file
 * open, since it waits, or since the file was moved or replaced. Undefined where the system does not show that.
 */
export function idleWriter(database: string): LockHolder | undefined {
  const [holder] = otherHolders(database, 'writer')
  if (holder === undefined || holder.isHalted) return holder
  if (hasOpen(holder.pid, database)) return undefined
  // A session opens the file a moment after it took the lock, and a reload ends one session and begins the next.
  pauseThread(REOPENING_MS)
  const isStill = otherHolders(database, 'writer').some(({ pid }) => pid === holder.pid)
  return isStill && !hasOpen(holder.pid, database) ? holder : undefined
}

const REOPENING_MS = 500

function pauseThread(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

/** True as well when this user may not see the files of the process. In a container, the file may have another path. */
function hasOpen(pid: number, database: string): boolean {
  const folder = `/proc/${pid}/fd`
  const inodeOf = (path: string) => statSync(path, { throwIfNoEntry: false, bigint: true })?.ino
  try {
    const own = inodeOf(resolvedPath(database))
    return readdirSync(folder).some(number => inodeOf(`${folder}/${number}`) === own)
  } catch {
    return true
  }
}

/** Four times the size that SQLite leaves to a WAL without readers (`journal_size_limit`). */
export const LARGE_WAL_BYTES = 256 * 1024 ** 2

/**
 * The other programs whose transactions keep the WAL from shrinking. Child processes are left out: they read for this
 * process.
 */
export const walReaders = (database: string): readonly LockHolder[] =>
  otherHolders(database, 'reading').filter(({ parent }) => parent !== process.pid)

/**
 * The PIDs in the text of /proc/locks, see proc_locks(5). Two kinds of lines are left out: a process that waits for a
 * lock has an arrow, and a lock of an open file has the PID -1. Pure.
 */
export function pidsIn(
  locks: string,
  { inode, first, last, byReaders }: Omit<LockedBytes, 'end'> & { inode: string },
): number[] {
  return locks.split('\n').flatMap(line => {
    const [, mode, pid, of, from, to] =
      /^\d+: POSIX +\S+ +(READ|WRITE) +(\d+) +\S+:(\d+) +(\d+) +(\d+|EOF)$/.exec(line) ?? []
    const isThere = of === inode && Number(from) <= last && (to === 'EOF' || Number(to) >= first)
    return isThere && (byReaders || mode === 'WRITE') ? [Number(pid)] : []
  })
}

/** What a state of proc_pid_stat(5) says about a process that keeps a lock. Pure. */
export function stateOf(letter: string): Pick<LockHolder, 'state' | 'isHalted'> {
  if (letter === 'T') return { state: 'stopped (SIGSTOP)', isHalted: true }
  if (letter === 't') return { state: 'stopped by a debugger', isHalted: true }
  return { state: letter === 'D' ? 'waiting for a disk' : 'running', isHalted: false }
}

function holderOf(pid: number): LockHolder {
  const [letter = '', parent] = afterName(textOf(pid, 'stat'))
  return {
    pid,
    parent: parent === undefined ? undefined : Number(parent),
    program: programOf(textOf(pid, 'cmdline').split('\0')),
    ...stateOf(letter),
  }
}

/** The fields of /proc/PID/stat from the state on. The name before them may contain spaces and parentheses. */
const afterName = (stat: string): string[] =>
  stat
    .slice(stat.lastIndexOf(')') + 1)
    .trim()
    .split(' ')

const INTERPRETERS = /^(node|nodejs|python[\d.]*|ruby|perl|php|Rscript)$/

/** Names of programs only: other arguments may be secret. Pure. */
export function programOf([command = '', ...args]: readonly string[]): string | undefined {
  const name = basename(command)
  if (!INTERPRETERS.test(name)) return name || undefined
  const script = args.find(argument => !/^--[a-z-]+=/.test(argument)) ?? ''
  return script === '' || script.startsWith('-') ? name : `${name} ${basename(script)}`
}

function textOf(pid: number, file: 'stat' | 'cmdline'): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    // The process has ended, or this user may not see it.
    return ''
  }
}

/** @returns a text such as `process 812 (sqlite3), which is running`; `otherwise` when no process is known */
export function holdersText(holders: readonly LockHolder[], otherwise: string): string {
  const texts = holders.map(
    ({ pid, program, state }) =>
      `process ${pid}${program === undefined ? '' : ` (${program})`}, which is ${state}`,
  )
  return texts.join(', and ') || otherwise
}

/** How to free a lock that a halted process holds; `otherwise` when none of the processes is halted. */
export function holdersHint(holders: readonly LockHolder[], otherwise: string): string {
  const texts = holders.flatMap(({ pid, isHalted }) =>
    isHalted ? [`Continue process ${pid} with kill -CONT ${pid}, or end it with kill -KILL ${pid}.`] : [],
  )
  return texts.join(' ') || otherwise
}
