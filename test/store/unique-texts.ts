import { canonicalInstant, isDay } from '../../src/base/instant.ts'
import { encodeJson } from '../../src/base/json.ts'
import { CATALOG, TABLES, tableNamed } from '../../src/catalog/catalog.ts'
import type { ParsedItem } from '../../src/declare/parsed-item.ts'
import { entity, requestKey, type Table } from '../../src/declare/table.ts'
import { compileParser } from '../../src/engine/parse/parse.ts'
import { REJECTS_NOTHING, type TemporaryStore } from './temporary-store.ts'

/** Rows of every resource, made from the declarations' examples, in which every string is unique. */

const MARKER = /mark-\d+-/g

/** Replaces every string by a unique marker and adds a field to every object. Instants and days stay unchanged. */
export function createMarker(): (value: unknown) => unknown {
  let count = 0
  const text = () => `mark-${count++}-${'語'.repeat(count % 40)}`
  const mark = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(mark)
    // Fields that an example omits get a text too, so that no column stays empty.
    if (value === null) return text()
    if (typeof value === 'string') {
      return isDay(value) || canonicalInstant(value) !== undefined ? value : text()
    }
    if (typeof value !== 'object') return value
    const marked = Object.entries(value as object).map(([name, inner]): [string, unknown] => [
      name,
      mark(inner),
    ])
    return { ...Object.fromEntries(marked), unknown_field: text() }
  }
  return mark
}

export function markersIn(text: string): Set<string> {
  return new Set(text.match(MARKER))
}

export interface StoredMarker {
  marker: string
  place: string
}

/** Every marker in a table, with its `table.column`. */
export function storedMarkers(store: TemporaryStore): StoredMarker[] {
  const tables = [...TABLES.keys(), 'sync_rejects']
  return tables.flatMap(table =>
    store
      .all(`SELECT * FROM "${table}"`)
      .flatMap(row =>
        Object.entries(row).flatMap(([column, value]) =>
          [...markersIn(String(value))].map(marker => ({ marker, place: `${table}.${column}` })),
        ),
      ),
  )
}

/** Whether a purge of the row removes a text at this place. */
export function isContentAt(place: string): boolean {
  const [name = '', column = ''] = place.split('.')
  if (name === 'sync_rejects') return column === 'item'
  const table = tableNamed(name)
  return table.content || column === '_extra' || table.columns[column]?.content === true
}

export interface MarkedRow {
  table: string
  key: string[]
}

/** One row of each table, with its child rows. */
export interface World {
  /** Stores all rows. After deletions, a second call stores them as rows that came back. */
  write(now: string): void
  /** Stores only the rows of lists and details, without those of single reads. */
  writeRows(now: string): void
  /** Records a reject for every row that can have one. */
  reject(now: string): void
  rows: readonly MarkedRow[]
  meeting: string
  copy: string
  /** The other copy of the e-mail, with another sender. */
  otherCopy: string
}

type Fields = Record<string, unknown>

export function markedWorld(store: TemporaryStore, mark: (value: unknown) => unknown): World {
  const marked = (resource: string, feed: string) =>
    mark(CATALOG.find(({ name }) => name === resource)?.example[feed]) as Fields
  const payloads = {
    members: marked('members', 'list'),
    teams: marked('teams', 'list'),
    collections: marked('collections', 'list'),
    activities: marked('activities', 'list'),
    message_copies: withSender(marked('messages', 'list')),
    meetings: marked('meetings', 'detail'),
    playbooks: marked('playbooks', 'detail'),
    playbook_results: marked('playbook_results', 'read'),
    crm_objects: marked('crm_objects', 'detail'),
    crm_records: marked('crm_records', 'list'),
  }
  const earlier = { ...payloads.crm_records, fields: mark({ name: 'earlier', stage: 'first' }) }
  const setting = encodeJson(marked('playbooks', 'execution_setting'))
  const text = String(mark('text'))
  const transcript = Array.from({ length: 3 }, () => marked('transcripts', 'read'))
  const id = (table: keyof typeof payloads, field = 'id') => String(payloads[table][field])
  const meeting = id('meetings', 'meeting_id')
  const copy = id('message_copies')
  const otherSender = {
    ...withSender(marked('messages', 'list')),
    header_message_id: payloads.message_copies['header_message_id'],
  }
  const otherCopy = String((otherSender as Fields)['id'])
  const otherText = String(mark('text'))
  const record = [id('crm_records', 'object'), id('crm_records')]
  const object = id('crm_objects', 'name')
  const singletons = {
    bot_definition: marked('bot_definition', 'read'),
    integrations: marked('integrations', 'read'),
  }
  const rejects = [
    ...['meetings.detail', 'transcripts.read', 'playbook_results.read'].map(feed => ({
      feed,
      scope: meeting,
    })),
    ...['crm_objects.detail', 'crm_records.list'].map(feed => ({ feed, scope: object })),
    { feed: 'message_bodies.read', scope: copy },
    { feed: 'messages.list', scope: copy },
    { feed: 'activities.list', scope: id('activities') },
    { feed: 'playbooks.detail', scope: id('playbooks') },
    { feed: 'collection_meetings.list', scope: id('collections') },
  ].map(reject => ({ ...reject, item: mark({ name: 'item' }) }))

  const requested = new Map([
    ['crm_records', record[0] ?? ''],
    ['playbook_results', meeting],
  ])

  const writeRows = (now: string) => {
    // An earlier state of the record, so that its history has a change.
    store.put('crm_records', [earlier], { now, requested: record[0] ?? '' })
    const { meetings, ...others } = payloads
    putOwn(store, { table: 'meetings', payload: meetings, own: { access: 'open' }, now })
    for (const [table, payload] of Object.entries(others)) {
      store.put(table, [payload], { now, requested: requested.get(table) ?? '' })
    }
    store.put('message_copies', [otherSender], { now })
    putOwn(store, { table: 'bot_definition', payload: singletons.bot_definition, own: { id: 1 }, now })
    const document = encodeJson(singletons.integrations)
    putOwn(store, { table: 'integrations', payload: {}, own: { id: 1, document }, now })
  }

  return {
    meeting,
    copy,
    otherCopy,
    rows: [
      ...(['members', 'teams', 'collections', 'activities', 'playbooks'] as const).map(table => ({
        table,
        key: [id(table)],
      })),
      { table: 'message_copies', key: [copy] },
      { table: 'message_copies', key: [otherCopy] },
      { table: 'playbook_results', key: [id('playbook_results')] },
      { table: 'meetings', key: [meeting] },
      { table: 'crm_objects', key: [object] },
      { table: 'crm_records', key: record },
      { table: 'bot_definition', key: ['1'] },
      { table: 'integrations', key: ['1'] },
    ],
    writeRows,
    write(now) {
      writeRows(now)
      store.merge.applyText(copy, { state: 'present', text }, now)
      store.merge.applyText(otherCopy, { state: 'present', text: otherText }, now)
      store.prepare('UPDATE playbooks SET execution_setting = ? WHERE id = ?').run(setting, id('playbooks'))
      putTranscript(store, meeting, transcript)
    },
    reject(now) {
      for (const { feed, scope, item } of rejects) {
        const [resource = ''] = feed.split('.')
        store.rejects.note({ resource, feed, scope, item, reason: 'no identity' }, now)
      }
    },
  }
}

/** The message with a sender: the roles of its participants are texts like any other. */
function withSender(message: Fields): Fields {
  const [first, ...others] = message['participants'] as Fields[]
  return { ...message, participants: [{ ...first, role: 'FROM' }, ...others] }
}

function parsed(table: Table, payload: unknown, key = ''): ParsedItem {
  const item = compileParser(table)(payload, REJECTS_NOTHING, key)
  if (!item) throw new Error(`the example of ${table.name} is rejected`)
  return item
}

interface OwnCells {
  table: string
  payload: unknown
  /** Columns that parley fills. */
  own: Readonly<Record<string, string | number>>
  now: string
}

/** Stores a payload together with columns that parley fills. */
export function putOwn(store: TemporaryStore, { table: name, payload, own, now }: OwnCells): void {
  const table = tableNamed(name)
  const item = parsed(table, payload)
  const columns = Object.keys(table.columns)
  for (const [column, value] of Object.entries(own)) item.cells[columns.indexOf(column)] = value
  const ticket = store.freshness.begin()
  store.write(name, [item], { ticket, now, filled: Object.keys(own) })
  store.freshness.end(ticket)
}

/** Returns whether anything was stored. */
export function putTranscript(
  store: TemporaryStore,
  meeting: string,
  entries: readonly unknown[],
  now = '2026-01-01T00:00:00.000Z',
): boolean {
  const answer = entity('answer', {
    about: 'An answer.',
    key: ['id'],
    columns: { id: requestKey('Meeting.') },
    children: [{ table: tableNamed('transcript_entries'), list: ['entries'], items: 'object' }],
  })
  const rows = parsed(answer, { entries }, meeting).children.get('transcript_entries') ?? []
  const changed = store.rows.replaceChildren('transcript_entries', meeting, rows, now)
  if (changed) store.prepare("UPDATE meetings SET transcript_state = 'present' WHERE id = ?").run(meeting)
  return changed
}
