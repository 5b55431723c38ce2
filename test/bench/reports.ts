import { copyFileSync, existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { isoInstant, systemClock } from '../../src/base/clock.ts'
import { loadSettings } from '../../src/config/load-settings.ts'
import { type OpenStore, openStore } from '../../src/store/store.ts'
import { forgetDerived } from '../support/derived-content.ts'
import { fillWarehouse } from './fill.ts'
import type { Usage } from './measured-process.ts'
import { measureWarehouse } from './warehouse-size.ts'
import { startWorkspace } from './workspace.ts'

/** Measures what the tables for reports cost: a backfill, the file, a full build, and each kind of change. */

export interface ReportsOptions {
  /** A warehouse from an earlier run in this folder is used again; then there is no backfill to compare. */
  folder: string
  /** The built command line program. */
  program: string
  messages: number
  withTexts: boolean
}

export interface ReportsMeasured {
  held: Readonly<Record<string, number>>
  /** Undefined when the warehouse was there. */
  backfill: { with: FilledWarehouse; without: FilledWarehouse } | undefined
  updates: readonly MeasuredUpdate[]
}

export interface FilledWarehouse {
  usage: Usage
  bytes: number
}

export interface MeasuredUpdate {
  after: string
  ms: number
  cpuMs: number
  /** The longest transaction, during which other writes wait. */
  longestMs: number
}

/** Sizes of a workspace like one that has been measured: with 186,000 messages, 2,900 meetings and 6,900 deals. */
const workspaceOf = (messages: number) => ({
  messages,
  meetings: Math.ceil(messages / 64),
  deals: Math.ceil(messages / 27),
  members: 60,
})

const WITHOUT_TEXTS = { PARLEY_SYNC_RESOURCES: 'activities,messages,meetings,crm_records' }

export async function runReports(options: ReportsOptions): Promise<ReportsMeasured> {
  const { folder } = options
  const path = join(folder, 'parley.db')
  const backfill = existsSync(path) ? undefined : await fillBoth(path, options)
  const copy = join(folder, 'changed.db')
  removeDatabase(copy)
  copyFileSync(path, copy)
  const store = open(copy)
  try {
    return { held: holdings(store), backfill, updates: await measureUpdates(store) }
  } finally {
    store.close()
  }
}

async function fillBoth(path: string, options: ReportsOptions) {
  const workspace = await startWorkspace(workspaceOf(options.messages))
  const fill = async (): Promise<FilledWarehouse> => {
    const settings = options.withTexts ? {} : WITHOUT_TEXTS
    const usage = await fillWarehouse(workspace, { ...options, settings })
    return { usage, bytes: measureWarehouse(path).bytes }
  }
  const store = open(path)
  // Where somebody else has this name, parley makes no tables for reports.
  store.db.exec('DROP TABLE calendar; CREATE TABLE calendar (taken)')
  store.close()
  const without = await fill()
  removeDatabase(path)
  const both = { without, with: await fill() }
  await workspace.close()
  return both
}

function removeDatabase(path: string): void {
  for (const end of ['', '-wal', '-shm', '-lock']) rmSync(path + end, { force: true })
}

let longestMs = 0

function open(path: string): OpenStore {
  const onTransaction = (ms: number) => {
    longestMs = Math.max(longestMs, ms)
  }
  return openStore({
    path,
    mode: 0o600,
    command: 'bench',
    pid: process.pid,
    clock: systemClock(),
    onTransaction,
  })
}

const COUNTED = ['messages', 'meetings', 'deals', 'people', 'conversations', 'record_conversations']

const count = (store: OpenStore, table: string) =>
  store.prepare<number>(`SELECT count(*) FROM ${table}`).pluck().get()

const holdings = (store: OpenStore) =>
  Object.fromEntries(COUNTED.map(table => [table, count(store, table) ?? 0]))

const NEWEST = (most: number) =>
  `SELECT header_message_id FROM messages WHERE _deleted_at IS NULL ORDER BY received_at DESC LIMIT ${most}`

const setDeleted = (table: string, at: string | null, where: string) => (store: OpenStore) => {
  store.prepare(`UPDATE ${table} SET _deleted_at = ? WHERE ${where}`).run(at)
}

const BUSIEST_COMPANY = `object = 'company' AND id = (SELECT record_id FROM record_activity WHERE object = 'company'
  ORDER BY meetings + mails DESC LIMIT 1)`
const BUSIEST_MEMBER = `id = (SELECT p.member_id FROM people p JOIN _conversation_people x ON x.person = p._id
  WHERE p.member_id IS NOT NULL GROUP BY 1 ORDER BY count(*) DESC LIMIT 1)`
const DELETED_AT = isoInstant(Date.now())
const isOfThisRun = `_deleted_at = '${DELETED_AT}'`

interface Event {
  after: string
  /** Changes rows in one transaction. */
  write?(store: OpenStore): void
  /** The settings from this event on. */
  env?: Readonly<Record<string, string>>
}

/** One after the other on the same file. */
const EVENTS: readonly Event[] = [
  { after: 'nothing' },
  {
    after: 'all keys again (`parley resync reports`)',
    write: store => store.resync(['reports'], DELETED_AT),
  },
  {
    after: '1,000 deleted e-mails',
    write: setDeleted('messages', DELETED_AT, `header_message_id IN (${NEWEST(1000)})`),
  },
  { after: '1,000 new e-mails', write: setDeleted('messages', null, isOfThisRun) },
  {
    after: 'one deleted e-mail',
    write: setDeleted('messages', DELETED_AT, `header_message_id IN (${NEWEST(1)})`),
  },
  { after: 'one new e-mail', write: setDeleted('messages', null, isOfThisRun) },
  {
    after: '100 threads joined',
    write: store =>
      store
        .prepare(
          `UPDATE message_copies SET thread_id = 'joined' WHERE thread_id IN (
            SELECT thread_id FROM message_copies WHERE thread_id <> '' GROUP BY 1 ORDER BY max(received_at) DESC LIMIT 100)`,
        )
        .run(),
  },
  { after: 'the busiest company deleted', write: setDeleted('crm_records', DELETED_AT, BUSIEST_COMPANY) },
  { after: 'its record after its links', write: setDeleted('crm_records', null, isOfThisRun) },
  { after: 'the busiest member gone', write: setDeleted('members', DELETED_AT, BUSIEST_MEMBER) },
  { after: 'the member back', write: setDeleted('members', null, isOfThisRun) },
  {
    after: 'another type of a field of deals, so a typed table replaced',
    write: store =>
      store.db.exec("UPDATE crm_fields SET type = 'TEXT' WHERE object = 'deal' AND name = 'amount'"),
  },
  {
    after: 'an own domain more, the commonest of customers',
    env: { PARLEY_REPORTING_INTERNAL_DOMAINS: 'parley-demo.example,mail.example' },
  },
  { after: 'another field for a role', env: { PARLEY_CRM_DEAL_NAME: 'next_step' } },
  { after: 'another time zone', env: { PARLEY_REPORTING_TIME_ZONE: 'Asia/Tokyo' } },
  {
    after: '100 e-mails erased',
    write(store) {
      const erased = store.prepare<string>(NEWEST(100)).pluck().all()
      store.tombstone(
        'messages',
        erased.map(id => [id]),
        DELETED_AT,
      )
      store.purger.purge({ before: '9999', limit: 1_000_000, now: DELETED_AT })
    },
  },
]

async function measureUpdates(store: OpenStore): Promise<MeasuredUpdate[]> {
  let config = configOf({})
  await store.reports.update(config)
  const measure = async (after: string): Promise<MeasuredUpdate> => {
    longestMs = 0
    const began = performance.now()
    const cpu = process.cpuUsage()
    await store.crmTables.finish()
    await store.reports.update(config)
    const { user, system } = process.cpuUsage(cpu)
    return { after, ms: performance.now() - began, cpuMs: (user + system) / 1000, longestMs }
  }
  await store.transaction(() => forgetDerived(store.db))
  const updates = [await measure('a first build')]
  for (const { after, write, env } of EVENTS) {
    if (write) await store.transaction(() => write(store))
    if (env) config = configOf(env)
    updates.push(await measure(after))
  }
  return updates
}

const configOf = (env: Readonly<Record<string, string>>) =>
  loadSettings({ flags: {}, env, cwd: '/', requireApi: false }).settings
