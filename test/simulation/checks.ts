import type { ResourceName } from '../../src/declare/resource-names.ts'
import { withReplacedText } from '../../src/simulator/faults/altered-bodies.ts'
import type { Fault } from '../../src/simulator/faults/faults.ts'
import type { IdleSimulator } from '../../src/simulator/server.ts'
import { TRUTH_KINDS, type TruthKind } from '../../src/simulator/world/truth.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'
import { compareWarehouse } from '../support/compare.ts'
import { fieldsOf, parseExact } from '../support/exact-json.ts'
import { type ExpectedTable, expectedWarehouse } from '../support/expected.ts'
import type { Truth } from '../support/truth.ts'
import { watchRecords } from './crm.ts'
import { type Sizes, sizesOf } from './rest.ts'

/**
 * Knows what the API published when, and compares the warehouse with it. Each day and at each deed it looks for a row that was
 * deleted although the API has it, a missing item of a complete resource, a change in the history that never happened, and a
 * record whose change was reported three hours ago and is not stored (`crm.ts`). A backfill that ends with 0 while nothing else
 * goes on leaves no difference. After the last deed no difference may be left after the days that `life.ts` names.
 */
export interface Witness {
  /** Call it after each change of the workspace, and of what lists leave out. */
  look(): void
  /**
   * What the warehouse says now, and what is not true.
   * @param isOk whether `parley status --check` says that nothing is to do
   * @param calmSince since when nothing has kept the program from reading
   */
  lies(isOk: boolean, calmSince: number): string[]
  /** Differences between the warehouse and what the API publishes now. */
  differences(): string[]
  /** Whether the warehouse says that something is the matter with the resource. */
  isSaid(resource: string): boolean
  /** Resources that are not well or have no next read, and single reads that are overdue. */
  unwell(): string[]
  /** Single reads of what is not stored and what nothing names, however rarely it is asked for. */
  unnamed(): string[]
  /** @param requests of the day */
  sizes(requests: number): Sizes
}

interface WitnessOptions {
  api: IdleSimulator
  database: string
  resources: readonly ResourceName[]
  now(): number
  /** How wrong the machine's clock has been, in the order of time. */
  clocks(): readonly ClockSpan[]
  /** Wrong answers that the API gives for good: what it answers is what it publishes. */
  nature(): readonly Fault[]
  /** Whether lists leave out items at random now, so that no reader can know of all. */
  isPartial(): boolean
}

/** From a time on, the machine's clock is wrong by this much. */
export interface ClockSpan {
  from: number
  offMs: number
}

/** When the machine's clock showed a time. Of several times the last, or the time itself when it has not shown it. */
export function timeOfClock(shown: number, clocks: readonly ClockSpan[], now: number): number {
  const times = clocks
    .map(({ from, offMs }, index) => ({ time: shown - offMs, from, to: clocks[index + 1]?.from ?? now }))
    .filter(({ time, from, to }) => time >= from && time <= to)
  return times.at(-1)?.time ?? shown
}

/** Tables of items that have a list, each with the items' kind and key. */
const LISTED = [
  ['members', 'members', 'id'],
  ['teams', 'teams', 'id'],
  ['collections', 'collections', 'id'],
  ['activities', 'activities', 'id'],
  ['message_copies', 'messages', 'id'],
  ['meetings', 'meetings', 'meeting_id'],
  ['playbooks', 'playbooks', 'id'],
  ['crm_records', 'crm_records', 'id'],
] as const satisfies readonly (readonly [table: string, kind: TruthKind, key: string])[]

const RESOURCE_OF: Readonly<Record<string, ResourceName>> = { message_copies: 'messages' }

const OVERDUE_MS = 6 * 3_600_000

/** A replica may lag, and an answer be late: what was published shortly before may look deleted. */
const TOLERANCE_MS = 3_600_000

export function createWitness({
  api,
  database,
  resources,
  now,
  clocks,
  nature,
  isPartial,
}: WitnessOptions): Witness {
  const timeOf = (instant: string) => timeOfClock(Date.parse(instant), clocks(), now())
  const altered = (line: string) =>
    nature()
      .filter(({ kind, requestHas }) => kind === 'rewrite' && requestHas === undefined)
      .reduce((text, { from = '', to = '' }) => withReplacedText(text, from, to), line)
  /** By kind and key: since when the item has been published without a break. */
  let since = new Map<string, number>()
  /** The same, but since lists have shown all items, for those that were published while they did not. */
  let shown = new Map<string, number>()
  const records = watchRecords(api, now)
  const read = resources as readonly string[]
  const listed = LISTED.filter(([table]) => read.includes(RESOURCE_OF[table] ?? table))

  const within = <T>(work: (db: Sqlite) => T, otherwise: T): T => {
    try {
      const db = openSqlite(database, { readonly: true, fileMustExist: true })
      try {
        const isMade =
          db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'sync_status'").get() !== undefined
        return isMade ? work(db) : otherwise
      } finally {
        db.close()
      }
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'SQLITE_CANTOPEN') return otherwise
      throw error
    }
  }

  return {
    look() {
      const isFirst = since.size === 0
      const next = new Map<string, number>()
      const nextShown = new Map<string, number>()
      const at = isFirst ? Number.NEGATIVE_INFINITY : now()
      for (const [, kind, key] of LISTED)
        for (const line of api.world.truth().lines(kind)) {
          const item = JSON.parse(altered(line))
          const name = `${kind} ${item[key]}`
          next.set(name, since.get(name) ?? at)
          if (shown.has(name) || !isPartial()) nextShown.set(name, shown.get(name) ?? at)
        }
      since = next
      shown = nextShown
      records.look()
    },
    lies: (isOk, calmSince) =>
      within(
        db => [
          ...listed.flatMap(([table, kind]) => wronglyDeleted(db, { table, kind, since, timeOf })),
          ...(read.includes('crm_records')
            ? records.lies(db, read.includes('activities') ? calmSince : undefined)
            : []),
          ...listed.flatMap(([table, kind]) => untrueCompleteness(db, { table, kind, since: shown, isOk })),
        ],
        [],
      ),
    differences: () =>
      within(
        db => {
          const expected = expectedWarehouse(truthOf(api, altered), { withheld: withheldOf(resources) })
          const besides = /are out of order/
          return [
            ...compareWarehouse(database, expected, besides),
            ...expected.flatMap(table => wronglyGone(db, table)),
          ]
        },
        ['there is no warehouse'],
      ),
    isSaid: resource =>
      within(
        db =>
          db
            .prepare("SELECT 1 FROM sync_status WHERE resource = ? AND (state <> 'ok' OR reason IS NOT NULL)")
            .get(resource) !== undefined,
        true,
      ),
    unwell: () => within(db => [...unwell(db, read), ...overdue(db, read, now())], []),
    unnamed: () => within(unnamed, []),
    sizes: requests => within(db => sizesOf(db, database, requests), {}),
  }
}

/** Rows that were marked as deleted although the API publishes the item, and did so long before. */
function wronglyDeleted(
  db: Sqlite,
  {
    table,
    kind,
    since,
    timeOf,
  }: {
    table: string
    kind: string
    since: ReadonlyMap<string, number>
    timeOf(instant: string): number
  },
): string[] {
  const rows = db.prepare(`SELECT id, _deleted_at AS at FROM "${table}" WHERE _deleted_at IS NOT NULL`).all()
  return (rows as { id: string; at: string }[]).flatMap(({ id, at }) => {
    const published = since.get(`${kind} ${id}`)
    return published !== undefined && published + TOLERANCE_MS < timeOf(at)
      ? [`${table} ${id} was deleted at ${at}, and the API has published it since ${dated(published)}`]
      : []
  })
}

/**
 * Items that are missing although the resource is said to be complete as of a later time. The rejects are a
 * column next to that time, which does not excuse a report that all is well.
 */
function untrueCompleteness(
  db: Sqlite,
  {
    table,
    kind,
    since,
    isOk,
  }: { table: string; kind: string; since: ReadonlyMap<string, number>; isOk: boolean },
): string[] {
  const resource = RESOURCE_OF[table] ?? table
  const claimed = db
    .prepare('SELECT complete_as_of FROM sync_status WHERE resource = ?')
    .pluck()
    .get(resource)
  if (typeof claimed !== 'string') return []
  const live = new Set(db.prepare(`SELECT id FROM "${table}" WHERE _deleted_at IS NULL`).pluck().all())
  const rejected = db
    .prepare('SELECT count(*) FROM sync_rejects WHERE resource = ? AND resolved_at IS NULL')
    .pluck()
    .get(resource)
  if (rejected !== 0 && !isOk) return []
  return [...since].flatMap(([name, published]) => {
    const [of = '', id = ''] = name.split(' ', 2)
    return of === kind &&
      published + TOLERANCE_MS < Date.parse(claimed) &&
      !live.has(name.slice(kind.length + 1))
      ? [
          `${table} ${id} is missing, though ${resource} is complete as of ${claimed} and it was published at ${dated(published)}`,
        ]
      : []
  })
}

/** Rows that no list shows and that were deleted, although their single reads answer. */
function wronglyGone(db: Sqlite, { table, key, optional }: ExpectedTable): string[] {
  const [id] = key
  if (id === undefined || key.length > 1 || optional.length === 0) return []
  const gone = db.prepare(`SELECT "${id}" FROM "${table}" WHERE _deleted_at IS NOT NULL`).pluck().all()
  return optional.flatMap(row =>
    gone.includes(row[id]) ? [`${table} ${row[id]} is deleted, though the API answers for it`] : [],
  )
}

const dated = (ms: number) => (Number.isFinite(ms) ? new Date(ms).toISOString() : 'the beginning')

/** Resources that are not well, or have no next read within the promised time. */
function unwell(db: Sqlite, resources: readonly string[]): string[] {
  const rows = db.prepare('SELECT resource, state, reason, next_run_at FROM sync_status').all() as Record<
    string,
    string | null
  >[]
  return rows
    .filter(
      ({ resource, state, next_run_at: next }) =>
        resources.includes(resource ?? '') && (!['ok', 'waiting'].includes(state ?? '') || next === null),
    )
    .map(row => `sync_status: ${JSON.stringify(row)}`)
}

/** Single reads that nothing hinders and that have been due for hours. */
function overdue(db: Sqlite, resources: readonly string[], now: number): string[] {
  const rows = db
    .prepare(
      'SELECT feed, count(*) AS number, min(due_at) AS since FROM sync_tasks WHERE due_at < ? GROUP BY feed',
    )
    .all(new Date(now - OVERDUE_MS).toISOString()) as { feed: string; number: number; since: string }[]
  return rows
    .filter(({ feed }) => resources.includes(String(feed.split('.')[0])))
    .map(({ feed, number, since }) => `${number} reads of ${feed} are due since ${since}`)
}

/** A list names its keys every day, and these namings count for a week. A webhook's naming counts until `deadline`. */
const NAMED_FOR_MS = 8 * 24 * 3_600_000

function unnamed(db: Sqlite): string[] {
  const rows = db
    .prepare(
      `SELECT feed, key FROM sync_tasks
       WHERE feed IN ('meetings.detail', 'playbook_results.read', 'transcripts.read')
         AND key NOT IN (SELECT id FROM meetings)
         AND key NOT IN (SELECT source_id FROM activities WHERE _deleted_at IS NULL AND source_id IS NOT NULL)
         AND key NOT IN (SELECT meeting_id FROM collection_meetings)
         AND unixepoch(coalesce(named_at, '1970-01-01')) * 1000 < unixepoch('now') * 1000 - @named
         AND unixepoch(coalesce(deadline, '1970-01-01')) * 1000 < unixepoch('now') * 1000 - @late`,
    )
    .all({ named: NAMED_FOR_MS, late: NAMED_FOR_MS / 8 }) as { feed: string; key: string }[]
  return rows.map(({ feed, key }) => `sync_tasks: ${feed} asks for ${key}, which nothing names`)
}

function truthOf({ world }: IdleSimulator, altered: (line: string) => string): Truth {
  const truth = world.truth()
  const entries = TRUTH_KINDS.map(
    kind => [kind, [...truth.lines(kind)].map(line => fieldsOf(parseExact(altered(line))))] as const,
  )
  return Object.fromEntries(entries) as unknown as Truth
}

/** The kinds that each resource reads; those of other resources are not expected. */
const KINDS: Readonly<Record<string, readonly TruthKind[]>> = {
  members: ['members'],
  teams: ['teams'],
  collections: ['collections'],
  collection_meetings: ['collection_meetings'],
  activities: ['activities', 'unlisted_activities'],
  messages: ['messages'],
  meetings: ['meetings', 'withheld_meetings'],
  transcripts: ['transcripts'],
  playbooks: ['playbooks', 'inactive_playbooks', 'execution_settings'],
  playbook_results: ['playbook_results'],
  crm_objects: ['crm_objects'],
  crm_records: ['crm_records'],
  crm_record_links: ['crm_record_links'],
  access_logs: ['access_logs'],
  bot_definition: ['bot_definition'],
  integrations: ['integrations'],
}

const withheldOf = (resources: readonly ResourceName[]): TruthKind[] => {
  const read = new Set(resources.flatMap(name => KINDS[name] ?? []))
  return TRUTH_KINDS.filter(kind => !read.has(kind))
}
