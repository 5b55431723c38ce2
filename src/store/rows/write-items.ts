import { decodeJson, encodeJson, exactNumber, isJsonObject } from '../../base/json.ts'
import { tableNamed } from '../../catalog/catalog.ts'
import type { ParsedItem } from '../../declare/parsed-item.ts'
import type { Prepare } from '../database/sqlite-types.ts'
import type { PurgeQueue } from '../deletions/purge-queue.ts'
import { keyOfValues, type Suspicions } from '../deletions/suspicions.ts'
import type { Freshness } from './freshness.ts'
import type { Group, MessageMerge } from './merge/messages.ts'
import type { OlderAnswers } from './older-answers.ts'
import { isSameJson, type RowWriters, type Written } from './payload-writer.ts'
import type { StoredRows } from './row-state.ts'
import type { ShownBy } from './shown-fields.ts'

export interface StoredItem {
  item: ParsedItem
  written: Written
}

export interface WriteOptions {
  /** Ticket of the request that brought the items: an older answer never overwrites a newer one. */
  ticket: number
  now: string
  /**
   * An item that is older than its stored row is stored only if the row has had only such items since this instant or
   * longer. Default: never.
   */
  olderSince?: string
  /** Columns that parley fills and for which the items have values. */
  filled?: readonly string[]
  /** The kind of endpoint that sent the items. Default `list`. */
  shownBy?: ShownBy
  /** True: a live row keeps its columns from the list; only its fields without a column change. */
  keepsLive?: boolean
}

/**
 * Stores items of one table and returns the stored ones. Leaves out items that a later request has already written,
 * items that are older than their stored row, and items that belong to a deleted or withheld row.
 */
export type Write = (table: string, items: readonly ParsedItem[], options: WriteOptions) => StoredItem[]

export interface WriteDeps {
  suspicions: Pick<Suspicions, 'hasAny' | 'end'>
  olderAnswers: OlderAnswers
  purgeQueue: PurgeQueue
  freshness: Freshness
  rows: RowWriters
  merge: MessageMerge
  note: ReturnType<typeof createHistory>
  stored: Pick<StoredRows, 'isLive'>
  /** Stores which workspace the rows belong to. Called before rows are stored. */
  claim(): void
}

export function createWrite(deps: WriteDeps): Write {
  const { suspicions, olderAnswers, purgeQueue, freshness, rows, note } = deps
  return (name, items, { ticket, now, olderSince = '', filled, shownBy, keepsLive = false }) => {
    if (items.length > 0) deps.claim()
    const table = tableNamed(name)
    const columns = Object.keys(table.columns)
    const keyIndexes = table.key.map(column => columns.indexOf(column))
    const write = rows.to(name, { filled, shownBy, keepsLive })
    const merge = name === 'message_copies' ? deps.merge : undefined
    const group = columns.indexOf('mail_id')
    const isSuspected = suspicions.hasAny(name)
    let hasOlder = olderAnswers.hasAny(name)
    const isBlocked = purgeQueue.insertBlocker(name)
    const stored: StoredItem[] = []
    const groups: Group[] = []
    for (const item of items) {
      const key = keyIndexes.map(index => item.cells[index] ?? null)
      const row = key.join('\u0000')
      const keepsColumns = keepsLive && deps.stored.isLive(name, key)
      // An item that keeps the columns does not make the answer of a list outdated. The answer of a list makes such an
      // item outdated only if that answer changed the row. Otherwise, frequent polls would keep a slow single read from
      // ever being stored.
      if (keepsColumns && freshness.isOutdated(ticket, `${name} changed`, row)) continue
      const part = keepsColumns ? `${name} without columns` : name
      if (freshness.isOutdated(ticket, part, row)) continue
      if (isBlocked?.(column => item.cells[columns.indexOf(column)] ?? null)) continue
      const rowKey = keyOfValues(name, key.map(String))
      if (isSuspected) suspicions.end(rowKey)
      let written = write(item, now)
      if (written === undefined) {
        hasOlder = true
        if (!olderAnswers.isBelieved(rowKey, { now, since: olderSince })) continue
        written = write(item, now, { mayBeOlder: true })
      }
      if (written === undefined) continue
      if (hasOlder) olderAnswers.end(rowKey)
      freshness.admits(ticket, part, row)
      if (written.status !== 'unchanged') {
        if (!keepsColumns) freshness.admits(ticket, `${name} changed`, row)
        if (written.status !== 'inserted') purgeQueue.forget(name, key.map(String))
        if (merge && !written.isExtraAlone) groups.push(...groupsOf(group, item, written))
        if (merge && written.status === 'revived') merge.resetText(String(key.at(-1)))
        if (name === 'crm_records') note(item, written, now)
      }
      stored.push({ item, written })
    }
    merge?.refresh(groups, now)
    return stored
  }
}

/**
 * The group to which a row belongs now, and the group to which it belonged before the write.
 * @param place index of the column with the group
 */
function groupsOf(place: number, item: ParsedItem, { before, isReplaced }: Written): Group[] {
  return [item.cells, ...(before ? [before] : [])].map(cells => ({ key: String(cells[place]), isReplaced }))
}

/** @returns a function that writes `crm_record_changes`: one row for each field whose value a write has changed */
export function createHistory(prepare: Prepare) {
  const columns = Object.keys(tableNamed('crm_records').columns)
  const [object, id, value] = ['object', 'id', 'fields'].map(name => columns.indexOf(name))
  const insert = prepare(
    // Two changes of a field in one millisecond have the same key. They become one change, from first to last value.
    `INSERT INTO crm_record_changes (object, record_id, field, observed_at, old_value, new_value)
     VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET new_value = excluded.new_value`,
  )
  return ({ cells }: ParsedItem, { status, before }: Written, now: string) => {
    // The earlier content of a purged row is unknown, so no change is recorded when the row comes back.
    if (!before || (status === 'revived' && before[value ?? -1] === null)) return
    const fieldsIn = (from: readonly unknown[]) => fieldsOf(String(from[value ?? -1] ?? '{}'))
    const [old, fresh] = [fieldsIn(before), fieldsIn(cells)]
    for (const field of new Set([...old.keys(), ...fresh.keys()])) {
      // Most fields of a changed record did not change. Skipping them here saves encoding their values as JSON.
      if (isIdentical(old.get(field), fresh.get(field))) continue
      const [from, to] = [jsonTextOf(old, field), jsonTextOf(fresh, field)]
      if (!isSameJson(from, to)) insert.run(cells[object ?? -1], cells[id ?? -1], field, now, from, to)
    }
  }
}

type FieldValues = ReadonlyMap<string, unknown>

/** The fields of a JSON object; none for other JSON. */
function fieldsOf(json: string): FieldValues {
  const { value } = decodeJson(json)
  return new Map(isJsonObject(value) ? Object.entries(value) : [])
}

function isIdentical(one: unknown, other: unknown): boolean {
  if (one === other) return true
  const digits = exactNumber(one)?.text
  return digits !== undefined && digits === exactNumber(other)?.text
}

/** The value as JSON text; null when the field is absent. */
function jsonTextOf(fields: FieldValues, field: string): string | null {
  return fields.has(field) ? encodeJson(fields.get(field)) : null
}
