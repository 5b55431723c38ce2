import { dirname } from 'node:path'
import { MINUTE_MS } from '../../base/clock.ts'
import { errorCode, reasonWithHint } from '../../base/errors.ts'
import { databaseBusy } from '../database/sqlite-errors.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import { onlyRow } from '../database/statements.ts'
import { freeOnDisk } from '../disk/disk-space.ts'
import { identityOf } from '../disk/location.ts'
import { haltedWriter, holdersHint, idleWriter, type LockHolder, longWriters } from '../disk/lock-holders.ts'
import { isLocked } from '../file/lock.ts'
import { META, readNote } from '../sync/meta.ts'
import type { Writer } from '../sync/writer-note.ts'

/** What the processes that update a warehouse have noted in `sync_meta`, corrected by their locks. */

/** The process that writes a warehouse, or the last one that did. */
export interface WriterState extends Writer {
  /** True while the process holds the lock. */
  running: boolean
  /** True when the process is gone and left open runs: it was killed, or the machine went down. */
  died: boolean
}

/** The state that the daemon stores in `sync_meta`. */
export interface DaemonState {
  state: 'running' | 'waiting' | 'stopped'
  /** A sentence for people, or null. */
  reason: string | null
  /** What a person can do, as a sentence. */
  hint?: string
  since: string
  /**
   * Why the daemon waits: `rebuilding`, `not-writing`, `not-opened`, `halted`, or the code of the error, such as
   * `unauthorized`.
   */
  code?: string
  /** When the daemon continues, if known. */
  until: string | null
  /** Exit status of the process, once stopped. */
  exit_status?: number
  /** Why a running daemon keeps earlier settings than those in its file. Absent after a reload without an error. */
  invalid_settings?: { since: string; reason: string }
}

/** Why the daemon is in its state, with what a person can do, for places with room for one text. */
export function reasonOfState({ reason, hint }: Pick<DaemonState, 'reason' | 'hint'>): string | null {
  return reason === null ? null : reasonWithHint({ message: reason, hint })
}

/** The reason of a backfill that ended because of resources: each that fails still is a problem itself. */
export const SOME_RESOURCES_FAILED = 'Some resources failed'

/** What a backfill stores in `sync_meta` at its end. */
export interface BackfillEnd {
  ended_at: string
  exit_status: number
  /** A sentence for people; null when the backfill read everything. */
  reason: string | null
  /** What a person can do, as a sentence. */
  hint?: string
}

/** `since` is null when the daemon ended without storing its state: it was killed, or the machine went down. */
export type DaemonReport = Omit<DaemonState, 'since'> & { since: string | null }

/** What a process reads of the notes: a value of `sync_meta`, as stored. */
type Notes = (key: string) => string | undefined

/**
 * The writer recorded in `sync_meta`, checked against the lock. When the lock cannot be checked, the writer counts as
 * running while a process with its PID exists.
 */
export function writerOf(db: Sqlite, file: string, notes: Notes): WriterState | null {
  const writer = readNote<Writer>(notes, META.writer)
  if (writer === undefined) return null
  const running = isLocked(file) ?? isAlive(writer.pid)
  const openRuns = db.prepare<unknown[], number>('SELECT count(*) FROM sync_runs WHERE ended_at IS NULL')
  return { ...writer, running, died: !running && onlyRow(openRuns.pluck()) > 0 }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return errorCode(error) === 'EPERM'
  }
}

/** Null when the last writer is a backfill that began after the stored end: the end is that of an earlier backfill. */
export function backfillOf(notes: Notes, writer: WriterState | null): BackfillEnd | null {
  const end = readNote<BackfillEnd>(notes, META.backfillEnd)
  if (end === undefined) return null
  const isEarlier = writer?.command === 'backfill' && Date.parse(end.ended_at) < Date.parse(writer.since)
  return isEarlier ? null : end
}

/** The daemon stores the time every minute. When the stored time is older than this, the daemon cannot write. */
const SILENT_MS = 3 * MINUTE_MS

/**
 * @returns the stored state, corrected when the daemon ended without storing its end, or when a process holds the lock
 *   and cannot write
 */
export function daemonOf(
  file: string,
  notes: Notes,
  { writer, now }: { writer: WriterState | null; now: number },
): DaemonReport | null {
  const state = readNote<DaemonState>(notes, META.daemonState)
  const lastNoted = notes(META.clock)
  const idle = state?.state === 'waiting' ? haltedWriter(file) : idleWriter(file)
  if (idle) return notWriting(file, { lastNoted, idle, writer })
  if (state === undefined || state.state === 'stopped') return state ?? null
  const isRunning = writer?.running === true && writer.command === 'daemon'
  if (!isRunning)
    return {
      state: 'stopped',
      reason: 'it was killed, or the machine or disk failed',
      since: null,
      until: null,
    }
  const isSilent = lastNoted !== undefined && now - Date.parse(lastNoted) > SILENT_MS
  if (state.state !== 'running' || !isSilent) return state
  return notWriting(file, { lastNoted, idle, writer })
}

/** Less space than SQLite needs to write. */
const FULL_BYTES = 1024 ** 2

interface SilentWriter {
  /** When the daemon last stored the time. */
  lastNoted: string | undefined
  /** Undefined for a process that has the file open. */
  idle: LockHolder | undefined
  writer: Writer | null
}

/** The state of a process that holds the lock and cannot say itself why it does not write. */
function notWriting(file: string, { lastNoted, idle, writer }: SilentWriter): DaemonReport {
  const state = {
    state: 'waiting',
    code: 'not-writing',
    since: lastNoted ?? null,
    until: null,
  } as const
  if (idle?.isHalted)
    return {
      ...state,
      code: 'halted',
      reason: `Process ${idle.pid} is ${idle.state}`,
      hint: holdersHint([idle], ''),
    }
  if (freeOnDisk(dirname(file)) < FULL_BYTES)
    return {
      ...state,
      reason: 'The disk of the database is full',
      hint: 'Free some space on the disk of the database.',
    }
  const holders = longWriters(file)
  if (holders.length > 0) {
    const { code, message: reason, hint = '' } = databaseBusy(file, undefined, holders)
    return { ...state, code, reason, hint }
  }
  if (idle === undefined)
    return { ...state, reason: 'it has not written the database for some minutes; see its log or /status' }
  const { pid } = idle
  // A process that has just started has not recorded itself yet, and in a container it has another PID.
  const inode = writer?.pid === pid ? writer.inode : undefined
  if (inode !== undefined && inode === identityOf(file)?.ino)
    return {
      ...state,
      reason: `Process ${pid} has closed the database until it can use it again`,
      hint: SEE_LOG,
    }
  const hint =
    inode === undefined
      ? `${SEE_LOG} If the file was moved or replaced, put it back.`
      : 'The file was moved or replaced: put it back.'
  const reason = `Process ${pid} holds the lock and does not have this file open`
  return { ...state, code: 'not-opened', reason, hint }
}

const SEE_LOG = 'The reason is in its log and in /status.'
