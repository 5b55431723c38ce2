import { expectedWarehouse } from '../support/expected.ts'
import { groupedBy } from '../support/grouped-by.ts'
import { ordered } from './counting.ts'
import { type Cells, type DemoWarehouse, textOf } from './demo-warehouse.ts'
import { type Expected, type Recount, text, within } from './recount.ts'

export const SYNC_RECOUNTS: Readonly<Record<string, Recount>> = {
  'coverage-of-a-month': { parameters: {}, least: 6, expected: coverage },
  freshness: { parameters: {}, least: 17, expected: freshness },
  'api-use-by-key': { parameters: { period: "'last 90 days'" }, least: 2, expected: apiUse },
  'withdrawn-this-month': { parameters: {}, least: 8, expected: withdrawn },
}

/** Segments as parley keeps them, and not as the view shows them. */
function coverage(warehouse: DemoWarehouse): Expected[] {
  const segments = warehouse.stored('SELECT * FROM sync_segments')
  const timed = ['access_logs', 'activities', 'messages'].map(resource => {
    const touching = segments.filter(
      row =>
        text(row, 'feed').startsWith(`${resource}.`) &&
        text(row, 'from_at') < '2026-06-01' &&
        (row['to_at'] === null || text(row, 'to_at') > '2026-05-01'),
    )
    return [resource, touching] as const
  })
  const whole = timed.map(([resource, parts]) => ({
    resource,
    // Everything was read to its end, after May was over.
    complete: parts.every(row => text(row, 'listed_at') > '2026-06-01') ? 'yes' : 'no',
    as_of:
      parts
        .map(row => text(row, 'listed_at'))
        .sort()
        .at(0) ?? null,
    parts: parts.length,
    parts_read: parts.length,
    still_to_read: resource === 'messages' ? 0 : null,
  }))
  const read = warehouse.stored('SELECT resource, complete_as_of FROM sync_resources')
  // The list of meetings has only their keys, and each is read by itself; transcripts and results follow the meetings.
  const completeAsOf = (...resources: string[]) =>
    read.flatMap(row => (resources.includes(text(row, 'resource')) ? text(row, 'complete_as_of') : [])).sort()
  const items = ['meetings', 'playbook_results', 'transcripts'].map(resource => ({
    resource,
    complete: 'yes',
    as_of: completeAsOf('meetings', resource)[0] ?? null,
    parts: 1,
    parts_read: 1,
    still_to_read: 0,
  }))
  return ordered([...whole, ...items], { by: ({ resource }) => resource })
}

/** How many of each resource the source publishes. */
function published({ rows, before, after }: DemoWarehouse): Readonly<Record<string, number>> {
  const count = (table: string, fits: (row: Cells) => boolean = () => true) => rows(table).filter(fits).length
  const tables = [
    'members',
    'teams',
    'collections',
    'collection_meetings',
    'messages',
    'crm_records',
    'crm_objects',
    'crm_record_links',
    'access_logs',
    'bot_definition',
    'integrations',
  ]
  const seen = new Set(before.activities.map(({ id }) => id))
  return {
    ...Object.fromEntries(tables.map(table => [table, count(table)])),
    // Items that no list shows any more, but single reads return.
    activities: count('activities') + after.unlisted_activities.filter(({ id }) => seen.has(id)).length,
    message_bodies: count('messages', ({ text_state }) => text_state === 'present'),
    transcripts: after.transcripts.filter(({ entries }) => (entries as unknown[]).length > 0).length,
    playbook_results: count('playbook_results'),
  }
}

function freshness(warehouse: DemoWarehouse): Expected[] {
  const counts = published(warehouse)
  const kept = warehouse.stored('SELECT * FROM sync_resources')
  const status = new Map(
    warehouse.stored('SELECT * FROM sync_status').map(row => [text(row, 'resource'), row]),
  )
  const instants = new Map<string, string | null>()
  const rows = kept.map(row => {
    const resource = text(row, 'resource')
    const told = status.get(resource) ?? {}
    const isListedByScope = resource === 'crm_records' || resource === 'collection_meetings'
    const fresh = (isListedByScope ? told['complete_as_of'] : row['fresh_as_of']) ?? null
    const noted = fresh ?? told['complete_as_of'] ?? null
    const instant = noted === null ? null : String(noted)
    instants.set(resource, instant)
    return {
      resource,
      state: text(told, 'state'),
      // Withheld meetings and inactive playbooks may be known or not.
      rows_live: counts[resource] ?? Number(told['rows_live']),
      fresh_as_of: fresh,
      complete_as_of: told['complete_as_of'] ?? null,
      pending_tasks: Number(told['pending_tasks']),
      rejected: 0,
      reason: told['state'] === 'ok' ? null : text(told, 'reason'),
    }
  })
  return ordered(
    rows,
    {
      by: ({ state }) =>
        ['failing', 'on hold', 'backfilling', 'waiting', 'unavailable'].indexOf(
          state.replace('ok', 'waiting'),
        ),
    },
    { by: ({ resource }) => instants.get(resource) ?? '' },
    { by: ({ resource }) => resource },
  )
}

function apiUse({ after }: DemoWarehouse): Expected[] {
  const isAsked = within('2026-04-02', '2026-07-01')
  const entries = after.access_logs
    .map(entry => ({
      at: new Date(String(entry['occurred_at'])).toISOString(),
      key: entry['api_key_suffix'] === null ? 'not recorded' : String(entry['api_key_suffix']),
      operation: String(entry['operation']),
      status: Number(String(entry['status_code'])),
      ms: entry['duration_ms'] === null ? undefined : Number(String(entry['duration_ms'])),
      bytes: entry['response_size_bytes'] === null ? undefined : Number(String(entry['response_size_bytes'])),
    }))
    .filter(({ at }) => isAsked(at))
  const rows = [...groupedBy(entries, ({ key }) => key)].map(([key, all]) => {
    const times = all.flatMap(({ ms }) => ms ?? []).sort((a, b) => a - b)
    const nearestRank = (share: number) => times[Math.ceil(times.length * share) - 1] ?? null
    const sizes = all.flatMap(({ bytes }) => bytes ?? [])
    const instants = all.map(({ at }) => at).sort()
    return {
      key_suffix: key,
      requests: all.length,
      refused_4xx: all.filter(({ status }) => status >= 400 && status < 500).length,
      failed_5xx: all.filter(({ status }) => status >= 500).length,
      megabytes: sizes.length === 0 ? null : sizes.reduce((total, each) => total + each, 0) / 1e6,
      median_ms: nearestRank(0.5),
      p95_ms: nearestRank(0.95),
      operations: new Set(all.map(({ operation }) => operation)).size,
      first_request: instants.at(0) ?? null,
      last_request: instants.at(-1) ?? null,
    }
  })
  return ordered(rows, { by: ({ requests }) => requests, down: true }, { by: row => row.key_suffix })
}

/** Items that existed before and do not now; only parley knows the time of the detection. */
function withdrawn(warehouse: DemoWarehouse): Expected[] {
  const before = new Map(expectedWarehouse(warehouse.before).map(({ table, rows }) => [table, rows]))
  const withheld = new Set(warehouse.after.withheld_meetings.map(({ meeting_id }) => String(meeting_id)))
  // No list shows them, yet they are not gone.
  const { unlisted_activities, inactive_playbooks } = warehouse.after
  const kept = new Set([
    ...withheld,
    ...[...unlisted_activities, ...inactive_playbooks].map(({ id }) => String(id)),
  ])
  const gone = ({ table, key = 'id' }: Kind) => {
    const still = new Set(warehouse.rows(table).map(row => row[key]))
    const rows = (before.get(table) ?? []) as readonly Cells[]
    return rows.filter(row => !still.has(row[key] ?? null) && !kept.has(text(row, 'id')))
  }
  const hidden = ((before.get('meetings') ?? []) as readonly Cells[]).filter(
    ({ id, access }) => access === 'open' && withheld.has(String(id)),
  )
  const foundOut = ({ table, key = 'id' }: Kind, row: Cells, column: string) => {
    const where = `${key} = '${text(row, key)}'`
    return text(warehouse.stored(`SELECT ${column} FROM ${table} WHERE ${where}`)[0], column)
  }
  const rows = [
    ...KINDS.flatMap(kind =>
      gone(kind).map(row => ({
        at: foundOut(kind, row, '_deleted_at'),
        what: kind.what === undefined ? text(row, 'object') : kind.what,
        name: kind.named(row),
        id: text(row, 'id'),
      })),
    ),
    ...hidden.map(row => ({
      at: foundOut({ table: 'meetings' }, row, '_changed_at'),
      what: 'meeting, withheld',
      name: textOf(row['title']),
      id: text(row, 'id'),
    })),
  ]
  return ordered(
    rows,
    { by: ({ at }) => at, down: true },
    { by: ({ what }) => what },
    { by: ({ id }) => id },
  ).map(({ at, ...row }) => ({ found_out: at, ...row }))
}

interface Kind {
  table: string
  key?: string
}

const KINDS: readonly (Kind & { what?: string; named: (row: Cells) => string | null })[] = [
  { what: 'member', table: 'members', named: row => textOf(row['name']) },
  { what: 'activity', table: 'activities', named: row => textOf(row['type']) },
  { what: 'e-mail', table: 'messages', key: 'header_message_id', named: row => textOf(row['subject']) },
  { what: 'meeting', table: 'meetings', named: row => textOf(row['title']) },
  { what: 'playbook', table: 'playbooks', named: row => textOf(row['name']) },
  { what: 'playbook result', table: 'playbook_results', named: row => textOf(row['playbook_name']) },
  { table: 'crm_records', named: () => null },
]
