import { decodeJson } from '../../base/json.ts'
import {
  type ChangePoint,
  cellsOfNote,
  changesSince,
  currentPoint,
  standsFor,
  WHOLE,
} from '../changes/changes-since.ts'
import { type CrmCell, storedName } from '../crm/columns.ts'
import { digestOf } from '../crm/dictionary.ts'
import { valuesOf } from '../crm/typed-rows.ts'
import { quote } from '../database/sql.ts'
import type { Prepare, Sqlite, StoredCell } from '../database/sqlite-types.ts'
import { createMeta, META, readNote } from '../sync/meta.ts'
import { dealColumns, withPipelines } from './deal-columns.ts'
import type { FollowDeps } from './follow.ts'
import { rolesOf, storedSettings } from './report-settings.ts'
import { localDay, type RecordSource, recordSource, roleValues } from './roles-in-table.ts'

/** How many deals one transaction computes, which takes some hundredths of a second. */
const DEALS_AT_ONCE = 50

/** Raised when this code derives other versions from the same rows. Files of before are then computed again. */
const VERSION = 2

/**
 * Keeps `deal_versions`: each deal as it was between two changes that parley observed. The rows are computed from the
 * record and its changes, backwards from the present, by the rules of today. Only the outcome of a purged deal cannot
 * be computed again, so it stays as it is stored.
 * @returns a function that computes the versions of the deals that have changed since its last call, or of all when a
 * rule has changed. Call it only while there are tables about deals
 */
export function createDealVersions({
  db,
  prepare,
  transaction,
}: Pick<FollowDeps, 'db' | 'prepare' | 'transaction'>): () => Promise<void> {
  const meta = createMeta(prepare)
  return async () => {
    const writer = createVersionWriter(db, prepare)
    if (!writer) return
    const rules = writer.rules()
    const before = readNote<Computed>(meta.get, META.dealVersions)
    const point = currentPoint(db)
    const isSame = before?.rules === rules
    const changed = isSame && before.point ? changedDeals(db, writer.source, before.point) : undefined
    const deals = changed ?? allDeals(db, writer.source)
    for (let from = 0; from < deals.length; from += DEALS_AT_ONCE) {
      const ids = deals.slice(from, from + DEALS_AT_ONCE)
      await transaction(() => ids.forEach(writer.refresh))
    }
    if (isSame && deals.length === 0) return
    await transaction(() => {
      if (!isSame) writer.removeOthers()
      meta.set(META.dealVersions, JSON.stringify({ rules, point } satisfies Computed))
    })
  }
}

/** The inputs from which the table was computed. */
interface Computed {
  /** Digest of the rules. */
  rules: string
  /** The table includes the changes up to this point. */
  point: ChangePoint | undefined
}

const allDeals = (db: Sqlite, { object }: RecordSource): string[] =>
  db.prepare<unknown[], string>('SELECT id FROM crm_records WHERE object = ? ORDER BY id').pluck().all(object)

/** The changed deals, and deals that share a note with a changed deal. Undefined when all deals may have changed. */
function changedDeals(db: Sqlite, { object, noted }: RecordSource, point: ChangePoint): string[] | undefined {
  const notes = changesSince(db, point)
  const parts = notes?.get(noted.table) ?? []
  if (!notes || parts.includes(WHOLE)) return undefined
  const changed = parts.map(part => cellsOfNote(part)[0] ?? '')
  if (changed.length === 0) return []
  return db
    .prepare<unknown[], [id: string, cell: StoredCell]>(
      `SELECT r.id, t.${quote(noted.column)} FROM crm_records r JOIN ${quote(noted.table)} t ON t.id = r.id
       WHERE r.object = ?${noted.table === 'crm_records' ? ' AND t.object = r.object' : ''} ORDER BY r.id`,
    )
    .raw()
    .all(object)
    .flatMap(([id, cell]) => (changed.some(note => standsFor(note, cell)) ? [id] : []))
}

// --------------------------------------------------------------------------------------------- states

interface DealRecord {
  id: string
  fields: string | null
  firstSeenAt: string
  /** When the content of the record last changed. */
  syncedAt: string
  deletedAt: string | null
}

interface StoredChange {
  field: string
  at: string
  /** The values as JSON. Both are NULL once they were purged: any other change has at least one. */
  old: string | null
  new: string | null
}

interface DealChange {
  field: string
  at: string
  old: string | null
  isPurged: boolean
}

interface DealState {
  from: string
  to: string | null
  /** `gone` after the deal's deletion; `purged` when its values are no longer known. */
  kind: 'known' | 'purged' | 'gone'
  values: ReadonlyMap<string, unknown>
}

/**
 * The changes of these fields. A field that appears with the value of a field that goes at the same time is that field
 * under a new name, so the changes of the earlier name are its own. Pure.
 * @param changes those of all fields of the deal, the latest first
 */
export function changesOfFields(changes: readonly StoredChange[], fields: readonly string[]): DealChange[] {
  /** By name: the field that it stands for, and until when. */
  const names = new Map(fields.map(field => [field, { field, until: '~' }]))
  return changes.flatMap(change => {
    const { at, old } = change
    const named = names.get(change.field)
    if (named === undefined || at >= named.until) return []
    const earlier =
      old === null && change.new !== null
        ? changes.find(
            one => one.at === at && one.new === null && one.old === change.new && !names.has(one.field),
          )
        : undefined
    if (earlier) {
      names.set(earlier.field, { field: named.field, until: at })
      names.set(change.field, { field: named.field, until: '' })
      return []
    }
    return [{ field: named.field, at, old, isPurged: old === null && change.new === null }]
  })
}

const NO_VALUES: ReadonlyMap<string, unknown> = new Map()

/**
 * The states of a deal between its changes, the earliest first. The values are the present ones, with one change after
 * the other undone. The values of a purged deal that came back are known only from its return on. Pure.
 * @param changes the changes, the latest first
 */
export function dealStates(deal: DealRecord, changes: readonly DealChange[]): DealState[] {
  const { firstSeenAt, deletedAt } = deal
  const isLivePurged = deletedAt === null && changes[0]?.isPurged === true
  const starts = [
    ...(isLivePurged ? [deal.syncedAt] : []),
    ...changes.map(({ at }) => at).filter(at => at > firstSeenAt),
    firstSeenAt,
  ]
  const values = new Map(valuesOf(deal.fields).map(([name, value]) => [storedName(name), value]))
  const states: DealState[] = []
  let isPurged = deletedAt !== null && deal.fields === null
  let to = deletedAt
  let next = 0
  for (const from of new Set(starts)) {
    if (to !== null && from >= to) continue
    for (let change = changes[next]; change && change.at > from; change = changes[next]) {
      values.set(change.field, change.old === null ? null : decodeJson(change.old).value)
      next += 1
    }
    isPurged ||= changes[next]?.isPurged === true && (!isLivePurged || to !== null)
    states.unshift({
      from,
      to,
      ...(isPurged ? { kind: 'purged', values: NO_VALUES } : { kind: 'known', values: new Map(values) }),
    })
    to = from
  }
  if (deletedAt !== null) states.push({ from: deletedAt, to: null, kind: 'gone', values: NO_VALUES })
  return states
}

// ------------------------------------------------------------------------------------------------ rows

/** The roles that the columns of a version depend on. */
const ROLES = [
  ...['stage', 'pipeline', 'amount', 'currency', 'close_date', 'owner', 'forecast_category'],
  ...['is_closed', 'is_won', 'status'],
]

function createVersionWriter(db: Sqlite, prepare: Prepare) {
  const settings = storedSettings(db)
  const chosen = settings && rolesOf(settings, 'deal')
  const source = recordSource(db, chosen?.['object'])
  if (!settings || !chosen || !source) return undefined
  const fields = [
    ...new Set(
      ROLES.flatMap(role => {
        const field = chosen[role] ?? undefined
        return field !== undefined && source.column(field) !== undefined ? [field] : []
      }),
    ),
  ]
  const sql = writeSql(settings, source, chosen, fields)
  const write = prepare(sql)
  const record = prepare<DealRecord>(
    `SELECT id, fields, _first_seen_at AS firstSeenAt, _synced_at AS syncedAt, _deleted_at AS deletedAt FROM crm_records
     WHERE object = ? AND id = ?`,
  )
  const history = prepare<StoredChange>(
    `SELECT field, observed_at AS at, old_value AS old, new_value AS new FROM crm_record_changes
     WHERE object = ? AND record_id = ? ORDER BY observed_at DESC`,
  )
  const remove = prepare(
    'DELETE FROM deal_versions WHERE deal_id = ? AND from_at NOT IN (SELECT value FROM json_each(?))',
  )
  const removeOthers = prepare(
    'DELETE FROM deal_versions WHERE deal_id NOT IN (SELECT id FROM crm_records WHERE object = ?)',
  )
  const dayOf = prepare<string | null>(`SELECT ${localDay('?')}`).pluck()
  return {
    source,
    rules: () =>
      digestOf([
        ...[VERSION, sql, source.object, source.noted, fields.map(field => [field, source.formOf(field)])],
        ...rulesOf(prepare),
      ]),
    refresh(id: string) {
      const deal = record.get(source.object, id)
      const states = deal ? dealStates(deal, changesOfFields(history.all(source.object, id), fields)) : []
      states.forEach(({ from, to, kind, values }, index) => {
        const [fromDay, toDay] = [dayOf.get(from), dayOf.get(to)]
        write.run({
          ...Object.fromEntries(fields.map((field, place) => [`c${place}`, cellIn(source, field, values)])),
          ...{ id, kind, from, to, fromDay, toDay },
          isLast: Number(to === null || fromDay !== toDay),
          isFirst: Number(index === 0),
        })
      })
      remove.run(id, JSON.stringify(states.map(({ from }) => from)))
    },
    removeOthers: () => void removeOthers.run(source.object),
  }
}

/** A whole number is bound as INTEGER, as a typed table has it. */
function cellIn(source: RecordSource, field: string, values: ReadonlyMap<string, unknown>): CrmCell {
  const cell = source.cell(field, values.get(field))
  return typeof cell === 'number' && Number.isSafeInteger(cell) ? BigInt(cell) : cell
}

/** The rows of other tables that the statement of `writeSql` uses. */
function rulesOf(prepare: Prepare): unknown[] {
  return [
    prepare('SELECT stage_id, stage, pipeline_id, outcome, is_guessed FROM stage_outcomes').all(),
    prepare("SELECT value FROM report_settings WHERE name = 'reporting.time_zone'").get(),
    prepare('SELECT min(day), max(day) FROM calendar').get(),
  ]
}

function writeSql(
  settings: NonNullable<ReturnType<typeof storedSettings>>,
  source: RecordSource,
  chosen: Readonly<Record<string, string | null>>,
  fields: readonly string[],
): string {
  const column = (field: string) => (fields.includes(field) ? `t.c${fields.indexOf(field)}` : undefined)
  const roles = roleValues('deal', { ...source, column }, chosen)
  const cells = fields.map((_, place) => `@c${place} AS c${place}`)
  const { outcome, ...values } = dealColumns(settings)
  const columns: Record<string, string> = {
    deal_id: '@id',
    from_at: '@from',
    to_at: '@to',
    from_day: '@fromDay',
    to_day: '@toDay',
    is_last_of_day: '@isLast',
    is_first_read: '@isFirst',
    ...values,
    outcome: `CASE @kind WHEN 'gone' THEN 'gone'
      WHEN 'purged' THEN coalesce((SELECT v.outcome FROM deal_versions v WHERE v.deal_id = @id AND v.from_at = @from), 'unknown')
      ELSE ${outcome} END`,
  }
  const names = Object.keys(columns)
  const others = names.slice(2)
  const listOf = (prefix: string) => others.map(name => `${prefix}.${name}`).join(', ')
  return `
INSERT INTO deal_versions (${names.join(', ')})
SELECT ${Object.values(columns).join(', ')}
FROM ${withPipelines(
    `(SELECT ${Object.entries(roles)
      .map(([role, value]) => `${value} AS ${quote(role)}`)
      .join(', ')} FROM (SELECT ${['1 AS one', ...cells].join(', ')}) t)`,
  )} x
LEFT JOIN stage_outcomes s ON s.stage_id = x.stage WHERE true
ON CONFLICT DO UPDATE SET ${others.map(name => `${name} = excluded.${name}`).join(', ')}
WHERE (${listOf('deal_versions')}) IS NOT (${listOf('excluded')})`
}
