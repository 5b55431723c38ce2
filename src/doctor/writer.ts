import { systemClock } from '../base/clock.ts'
import type { Sqlite } from '../store/database/sqlite-types.ts'
import { holdersHint, holdersText, lockHolders, longWriters } from '../store/disk/lock-holders.ts'
import { type DaemonReport, daemonOf, isAlive } from '../store/status/processes.ts'
import { readMeta } from '../store/sync/meta.ts'
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
  /** The program that holds the lock; undefined when this user may not see it. */
  program: string | undefined
  /** The record that the process made of itself; undefined when there is none or it cannot be read. */
  recorded: Writer | undefined
  /** Why it does not write; undefined while it writes, as far as the system shows that. */
  waiting: DaemonReport | undefined
}

/** Where the system does not show locks, the recorded writer counts as running while a process with its PID exists. */
export function runningWriter({ database, db }: WriterContext): RunningWriter | undefined {
  const last = readable(() => db && readWriter(db))
  const holders = lockHolders(database, 'writer')
  if (holders === undefined)
    return last && isAlive(last.pid)
      ? { pid: last.pid, program: undefined, recorded: last, waiting: undefined }
      : undefined
  const [holder] = holders
  if (holder === undefined) return undefined
  const { pid, program } = holder
  const recorded = last?.pid === pid ? last : undefined
  const writer = recorded ? { ...recorded, running: true, died: false } : null
  const notes = (key: string) => readable(() => db && readMeta(db, key))
  const state = daemonOf(database, notes, { writer, now: systemClock().now() })
  return { pid, program, recorded, waiting: state?.state === 'waiting' ? state : undefined }
}

export function writerFinding({ database, db }: WriterContext, line: CheckFindings): Finding {
  if (lockHolders(database, 'writer') === undefined) {
    const last = db && readWriter(db)
    const who = last
      ? `the last writer was process ${last.pid} (parley ${last.command}), started ${dateTimeText(last.since)}`
      : 'no earlier writer is recorded'
    return line.note(`this system does not show whether a process holds the lock; ${who}`)
  }
  const writer = runningWriter({ database, db })
  if (writer === undefined) return line.ok('no process holds the lock')
  const { pid, program, recorded, waiting } = writer
  const command = recorded
    ? `parley ${recorded.command} since ${dateTimeText(recorded.since)}`
    : (program ?? 'command unknown')
  const found = `process ${pid} holds the lock (${command})`
  if (waiting === undefined || waiting.code === 'rebuilding')
    return line.note(found, 'A backfill or daemon cannot start until it ends.')
  const since = waiting.since === null ? '' : ` since ${dateTimeText(waiting.since)}`
  return line.warning(
    `${found} and waits${since}: ${waiting.reason ?? 'see its log'}`,
    waiting.hint ?? 'See its log.',
  )
}

/** Programs that keep parley from writing. */
export function writeLockFindings(database: string, line: CheckFindings): Finding[] {
  const others = longWriters(database)
  if (others.length === 0) return []
  const found = `SQLite's lock for writing is held by ${holdersText(others, '')}`
  const hint = holdersHint(others, 'parley cannot write until that program ends its transaction.')
  return [others.some(({ isHalted }) => isHalted) ? line.warning(found, hint) : line.note(found, hint)]
}

function readable<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    // Other checks report a damaged database. The process that holds the lock is known without its record.
    return undefined
  }
}
