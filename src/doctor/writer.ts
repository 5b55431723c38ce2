import type { Sqlite } from '../store/database/sqlite-types.ts'
import {
  holdersHint,
  holdersText,
  idleWriter,
  type LockHolder,
  lockHolders,
} from '../store/disk/lock-holders.ts'
import { type DaemonState, isAlive } from '../store/status/processes.ts'
import { META, readMeta, readNote } from '../store/sync/meta.ts'
import { readWriter, type Writer } from '../store/sync/writer-note.ts'
import { dateTimeText } from '../terminal/wording.ts'
import type { CheckFindings, Finding } from './finding.ts'

/** Finds the process that writes the database, without taking the database's lock. */

interface WriterContext {
  database: string
  db: Sqlite | undefined
}

export interface RunningWriter {
  pid: number
  /** The record that the process made of itself; undefined when there is none or it cannot be read. */
  recorded: Writer | undefined
  /** False while the process is stopped or does not use the file, as far as the system shows that. */
  isAtWork: boolean
}

/** Where the system does not show locks, the recorded writer counts as running while a process with its PID exists. */
export function runningWriter({ database, db }: WriterContext): RunningWriter | undefined {
  const recorded = recordedWriter(db)
  const holders = lockHolders(database, 'writer')
  if (holders === undefined)
    return recorded && isAlive(recorded.pid) ? { pid: recorded.pid, recorded, isAtWork: true } : undefined
  const [holder] = holders
  if (holder === undefined) return undefined
  const isAtWork = idleWriter(database) === undefined
  return { pid: holder.pid, recorded: recordOf(holder, recorded), isAtWork }
}

export function writerFinding({ database, db }: WriterContext, line: CheckFindings): Finding {
  const holders = lockHolders(database, 'writer')
  if (holders === undefined) {
    const last = db && readWriter(db)
    const who = last
      ? `the last writer was process ${last.pid} (parley ${last.command}), started ${dateTimeText(last.since)}`
      : 'no earlier writer is recorded'
    return line.note(`this system does not show whether a process holds the lock; ${who}`)
  }
  const [holder] = holders
  if (holder === undefined) return line.ok('no process holds the lock')
  const recorded = recordOf(holder, recordedWriter(db))
  const command = recorded
    ? `parley ${recorded.command} since ${dateTimeText(recorded.since)}`
    : holder.program
  const found = `process ${holder.pid} holds the lock (${command ?? 'command unknown'})`
  if (holder.isHalted) return line.warning(`${found} and is ${holder.state}`, holdersHint([holder], ''))
  if (db && idleWriter(database)) {
    const waiting = waitingDaemon(db)
    if (waiting)
      return line.warning(
        `${found} and waits since ${dateTimeText(waiting.since)}: ${waiting.reason ?? 'see its log'}`,
        waiting.hint ?? 'See its log.',
      )
    return line.warning(
      `${found} and does not have this file open`,
      'See its log. If the file was moved or replaced, put it back.',
    )
  }
  return line.note(found, 'A backfill or daemon cannot start until it ends.')
}

/** The state of a daemon that has closed its file, as when the disk is full. */
function waitingDaemon(db: Sqlite): DaemonState | undefined {
  const state = readNote<DaemonState>(key => readMeta(db, key), META.daemonState)
  return state?.state === 'waiting' ? state : undefined
}

/**
 * Programs that keep parley from writing. The writer is left out: it holds SQLite's lock for a moment at each commit.
 */
export function writeLockFindings(database: string, line: CheckFindings): Finding[] {
  const writers = (lockHolders(database, 'writer') ?? []).map(({ pid }) => pid)
  const others = (lockHolders(database, 'writing') ?? []).filter(({ pid }) => !writers.includes(pid))
  if (others.length === 0) return []
  const found = `SQLite's lock for writing is held by ${holdersText(others, '')}`
  const hint = holdersHint(others, 'parley cannot write until that program ends its transaction.')
  return [others.some(({ isHalted }) => isHalted) ? line.warning(found, hint) : line.note(found, hint)]
}

const recordOf = ({ pid }: LockHolder, recorded: Writer | undefined): Writer | undefined =>
  recorded?.pid === pid ? recorded : undefined

function recordedWriter(db: Sqlite | undefined): Writer | undefined {
  try {
    return db && readWriter(db)
  } catch {
    // Other checks report a damaged database. The process that holds the lock is known without its record.
    return undefined
  }
}
