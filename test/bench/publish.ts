import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { systemClock } from '../../src/base/clock.ts'
import type { ExportSummary } from '../../src/export/export.ts'
import type { PublishSummary } from '../../src/publish/publish.ts'
import { openStore } from '../../src/store/store.ts'
import { fillWarehouse } from './fill.ts'
import { startMeasured, type Usage } from './measured-process.ts'
import { startWorkspace } from './workspace.ts'

/** Measures publications of a large warehouse, and an export of the same rows to bare Parquet files. */

export interface PublishOptions {
  /** A folder that is kept has its warehouse filled only once. */
  folder: string
  /** The built command line program. */
  program: string
  messages: number
}

/** One run of the program. */
export interface Written {
  usage: Usage
  files: number
  bytes: number
  rows: number
}

export interface PublishMeasured {
  bare: Written
  first: Written
  /** Nothing has changed since the publication before. */
  unchanged: readonly Written[]
  /** The same, with everything compared. */
  full: Written
  /** The newest hundredth of the messages has changed. */
  newest: Written
  /** A hundredth has changed, of every month. */
  spread: Written
}

const TEN_YEARS_DAYS = 3650
const UNCHANGED_RUNS = 3

/** Texts would take an hour to read. */
const LISTS = {
  PARLEY_SYNC_RESOURCES: 'members,teams,collections,activities,messages,meetings,crm_records,access_logs',
}

export async function runPublish(options: PublishOptions): Promise<PublishMeasured> {
  const { folder } = options
  if (!existsSync(join(folder, 'parley.db'))) await fill(options)
  const files = join(folder, 'parquet')
  rmSync(files, { recursive: true, force: true })
  const bare = exportedBy(await run<ExportSummary>(options, ['export', 'parquet', files]))
  rmSync(files, { recursive: true, force: true })
  const target = join(folder, 'lake')
  rmSync(target, { recursive: true, force: true })
  return { bare, ...(await runPublications(options, target)) }
}

async function runPublications(
  options: PublishOptions,
  target: string,
): Promise<Omit<PublishMeasured, 'bare'>> {
  const database = join(options.folder, 'parley.db')
  const publish = async (...flags: string[]) =>
    writtenBy(await run<PublishSummary>(options, ['publish', target, ...flags]))
  const first = await publish()
  const unchanged: Written[] = []
  while (unchanged.length < UNCHANGED_RUNS) unchanged.push(await publish())
  const full = await publish('--full')
  await change(
    database,
    '_id IN (SELECT _id FROM messages ORDER BY received_at DESC LIMIT (SELECT count(*) / 100 FROM messages))',
  )
  const newest = await publish()
  await change(database, '_id % 100 = 0')
  return { first, unchanged, full, newest, spread: await publish() }
}

async function fill(options: PublishOptions): Promise<void> {
  const { messages } = options
  const workspace = await startWorkspace({
    messages,
    meetings: Math.ceil(messages / 100),
    historyDays: TEN_YEARS_DAYS,
    now: 'real',
  })
  try {
    await fillWarehouse(workspace, { ...options, settings: LISTS })
  } finally {
    await workspace.close()
  }
}

interface Ran<Summary> {
  usage: Usage
  summary: Summary
}

async function run<Summary>(
  { folder, program }: PublishOptions,
  [command = '', ...args]: readonly string[],
): Promise<Ran<Summary>> {
  process.stderr.write(`parley ${command} ${args.join(' ')}\n`)
  const { child, ended } = startMeasured(
    [program, command, ...args, '--database', join(folder, 'parley.db'), '--json'],
    { PATH: process.env['PATH'] },
  )
  const out = child.stdout ? text(child.stdout) : ''
  const usage = await ended
  return { usage, summary: JSON.parse(await out) as Summary }
}

/** Changes e-mails as a sync does, in one transaction. */
async function change(database: string, where: string): Promise<void> {
  const store = openStore({
    path: database,
    mode: 0o600,
    command: 'bench',
    pid: process.pid,
    clock: systemClock(),
  })
  await store.transaction(() => store.db.exec(`UPDATE messages SET subject = subject || '+' WHERE ${where}`))
  store.close()
}

const sum = <Item>(items: readonly Item[], figure: (item: Item) => number) =>
  items.reduce((total, item) => total + figure(item), 0)

function writtenBy({ usage, summary }: Ran<PublishSummary>): Written {
  const { tables } = summary
  return {
    usage,
    files: sum(tables, table => table.filesWritten),
    bytes: sum(tables, table => table.bytesWritten),
    rows: sum(tables, table => table.rowsWritten),
  }
}

function exportedBy({ usage, summary: { tables } }: Ran<ExportSummary>): Written {
  return {
    usage,
    files: sum(tables, table => table.files),
    bytes: sum(tables, table => table.bytes),
    rows: sum(tables, table => table.rows),
  }
}
