import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Change } from '../../src/simulator/changes/change.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'
import { questionFiles } from '../questions/question-file.ts'
import { startDaemon } from './daemon-process.ts'
import { fillWarehouse } from './fill.ts'
import { scansOf } from './plan-scans.ts'
import { wholeWorkspace } from './whole-workspace.ts'
import { startWorkspace, type Workspace } from './workspace.ts'

/** Measures how long the questions of `drizzle/questions` take while a daemon writes. */

export interface QuestionsOptions {
  /** A warehouse from an earlier run in this folder is used again. */
  folder: string
  /** The built command line program. */
  program: string
  messages: number
  logLevel: string
}

export interface QuestionsMeasured {
  held: Readonly<Record<string, number>>
  /** Rows that the daemon wrote meanwhile. */
  written: number
  seconds: number
  times: readonly QuestionTime[]
}

export interface QuestionTime {
  name: string
  /** About one deal, meeting, thread or term. */
  isAboutOne: boolean
  rows: number
  medianMs: number
  longestMs: number
  /** Processor time only, which is more reliable on a busy machine. */
  medianCpuMs: number
  /** The largest table or index that is scanned in full, if any. */
  worstScan: { name: string; rows: number } | undefined
}

const ABOUT_ONE = ['one-deal', 'one-meeting', 'response-times-in-thread', 'mentions-of-a-term-by-month']
const ROUNDS = 11
const CHANGES: readonly Change[] = [
  { kind: 'publish', resource: 'messages', count: 5 },
  { kind: 'edit', resource: 'crm_records', object: 'deal', count: 2 },
  { kind: 'publish', resource: 'meetings' },
  { kind: 'publish', resource: 'activities', count: 5 },
]

export async function runQuestions(options: QuestionsOptions): Promise<QuestionsMeasured> {
  const { messages, folder } = options
  const begun = join(folder, 'questions-now')
  // The same workspace as when the warehouse was filled. It depends on the end of its history.
  const now = existsSync(begun) ? readFileSync(begun, 'utf8') : new Date().toISOString()
  const workspace = await startWorkspace({ ...wholeWorkspace(messages), now }, Date.now() - Date.parse(now))
  try {
    if (!existsSync(begun)) {
      await fillWarehouse(workspace, options)
      writeFileSync(begun, now)
    }
    return await measure(workspace, options)
  } finally {
    await workspace.close()
  }
}

async function measure(workspace: Workspace, options: QuestionsOptions): Promise<QuestionsMeasured> {
  const daemon = startDaemon(workspace, { ...options, pollSeconds: 1 })
  const db = await daemon.openWarehouse()
  try {
    const began = new Date().toISOString()
    const started = performance.now()
    const times = await askAll(db, workspace)
    const seconds = (performance.now() - started) / 1000
    return { held: holdings(db), written: writtenSince(db, began), seconds, times }
  } finally {
    db.close()
    await daemon.stop()
  }
}

/** Runs the questions in turns, each after a change, so that the daemon's work affects all of them alike. */
async function askAll(db: Sqlite, workspace: Workspace): Promise<QuestionTime[]> {
  const asked = questionFiles().map(({ name, sql }) => ({
    name,
    sql,
    taken: [] as number[],
    cpu: [] as number[],
    rows: 0,
  }))
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [place, each] of asked.entries()) {
      const change = CHANGES[(round + place) % CHANGES.length]
      if (change) await workspace.change(change)
      const usage = process.cpuUsage()
      const began = performance.now()
      each.rows = db.prepare(each.sql).all().length
      each.taken.push(performance.now() - began)
      const { user, system } = process.cpuUsage(usage)
      each.cpu.push((user + system) / 1000)
    }
  }
  return asked.map(({ name, sql, taken, cpu, rows }) => ({
    name,
    isAboutOne: ABOUT_ONE.includes(name),
    rows,
    medianMs: medianOf(taken),
    longestMs: Math.max(...taken),
    medianCpuMs: medianOf(cpu),
    worstScan: scansOf(db, sql).at(0),
  }))
}

const medianOf = (times: readonly number[]): number =>
  [...times].sort((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0

const HELD = ['message_copies', 'messages', 'meetings', 'transcript_entries', 'crm_records', 'activities']

function holdings(db: Sqlite): Record<string, number> {
  const count = (table: string) => db.prepare(`SELECT count(*) FROM ${table}`).pluck().get() as number
  return Object.fromEntries(HELD.map(table => [table, count(table)]))
}

function writtenSince(db: Sqlite, began: string): number {
  return ['message_copies', 'meetings', 'crm_records', 'activities']
    .map(table => db.prepare(`SELECT count(*) FROM ${table} WHERE _synced_at >= ?`).pluck().get(began))
    .reduce<number>((sum, count) => sum + Number(count), 0)
}
