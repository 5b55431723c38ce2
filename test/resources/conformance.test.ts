import { describe, expect, test } from 'vitest'
import { CATALOG, hasIds, TABLES, tableNamed } from '../../src/catalog/catalog.ts'
import type { Feed, Resource } from '../../src/declare/resource.ts'
import { entity, requestKey, type Table } from '../../src/declare/table.ts'
import { compileParser } from '../../src/engine/parse/parse.ts'
import { createRowWriter } from '../../src/store/rows/payload-writer.ts'
import { createShownFields } from '../../src/store/rows/shown-fields.ts'
import { temporaryStore } from '../store/temporary-store.ts'

interface NamedFeed {
  name: string
  resource: Resource
  feed: Feed
  example: unknown
}

const FEEDS: readonly NamedFeed[] = CATALOG.flatMap(resource =>
  Object.entries(resource.feeds).map(([name, feed]) => ({
    name: `${resource.name}.${name}`,
    resource,
    feed,
    example: resource.example[name],
  })),
)

/** Feeds whose example is the payload of a table's row. */
const storesPayload = ({ feed }: NamedFeed): boolean => {
  if (feed.mode === 'snapshot') return feed.lists === 'rows' && tableNamed(feed.table).kind === 'entity'
  if (feed.mode === 'item') return ['row', 'body', 'results', 'transcript'].includes(feed.stores)
  return feed.mode !== 'singleton' || feed.stores === 'row'
}

const payloadFeeds = FEEDS.filter(storesPayload).filter(
  ({ feed }) => tableNamed(feed.table).kind === 'entity',
)
/** Feeds whose example is one row of a list that is the whole answer. */
const listFeeds = FEEDS.filter(storesPayload).filter(({ feed }) => tableNamed(feed.table).kind === 'child')

function scopeOf(table: Table, example: unknown): string {
  const requested = Object.values(table.columns).find(({ source }) => source.from === 'request')?.source
  const path = requested?.from === 'request' ? requested.path?.[0] : undefined
  const fields = new Map(Object.entries(example as object))
  return String((path && fields.get(path)) ?? 'scope')
}

const UUID = /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g
const uuidOf = (id: string) =>
  `abcdef00-0000-4000-8000-${Buffer.from(id).toString('hex').padStart(12, '0').slice(-12)}`

describe.each(payloadFeeds)('the example of $name', ({ feed, example }) => {
  const table = tableNamed(feed.table)

  const parse = (payload: unknown) => {
    const said: string[] = []
    const item = compileParser(table)(
      payload,
      {
        drift: (name, field, reason) => said.push(`${name}.${field}: ${reason}`),
        reject: (name, _item, reason) => said.push(`${name}: ${reason}`),
      },
      scopeOf(table, example),
    )
    return { item, said }
  }

  test('the example is parsed without drift and without rejects', () => {
    const { item, said } = parse(example)
    expect(said).toEqual([])
    expect(item?.extra).toBe(null)
    for (const rows of item?.children.values() ?? []) for (const { extra } of rows) expect(extra).toBe(null)
  })

  test('the example fills every column that its payload has, and every table below it', () => {
    const { item } = parse(example)
    const given = (name: string) => Object.entries(table.columns).findIndex(([column]) => column === name)
    const empty = Object.entries(table.columns)
      .filter(([name, { source }]) => source.from === 'payload' && item?.cells[given(name)] === null)
      .map(([name]) => name)
    // Fields that the example has as null on purpose.
    expect(empty.filter(name => !['created_via'].includes(name))).toEqual([])
  })

  test('the example is stored, and storing it again changes nothing', () => {
    const store = temporaryStore()
    const { item } = parse(example)
    if (!item) throw new Error('rejected')
    const own = Object.entries(table.columns).flatMap(([name, { source, kind }], index) => {
      if (source.from !== 'parley' || !table.key.includes(name)) return []
      item.cells[index] = kind === 'integer' ? 1 : 'key'
      return [name]
    })
    const write = createRowWriter(store.prepare, table, createShownFields(store.prepare), { filled: own })
    expect(write(item, '2026-01-01T00:00:00.000Z')?.status).toBe('inserted')
    expect(write(item, '2026-01-02T00:00:00.000Z')?.status).toBe('unchanged')
    expect(store.column(`SELECT count(*) FROM live_${table.name}`)).toEqual([1])
  })

  test('the example is parsed equally with its fields in reverse order', () => {
    const reversed = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(reversed)
      if (typeof value !== 'object' || value === null) return value
      return Object.fromEntries(
        Object.entries(value)
          .reverse()
          .map(([name, inner]) => [name, reversed(inner)]),
      )
    }
    const { item, said } = parse(reversed(example))
    expect(said).toEqual([])
    const straight = parse(example).item
    const jsonAt = new Set(
      Object.values(table.columns).flatMap(({ kind }, index) => (kind === 'json' ? [index] : [])),
    )
    expect(item?.cells.filter((_, index) => !jsonAt.has(index))).toEqual(
      straight?.cells.filter((_, index) => !jsonAt.has(index)),
    )
    expect([...(item?.children ?? [])].map(([name, rows]) => [name, rows.length])).toEqual(
      [...(straight?.children ?? [])].map(([name, rows]) => [name, rows.length]),
    )
  })

  test('the example is parsed equally with its UUIDs in upper case', () => {
    const withUuids = JSON.stringify(example).replace(
      /"((?!\d{4}-)[\w]+_\d)"/g,
      (_, id: string) => `"${uuidOf(id)}"`,
    )
    const inUpperCase = withUuids.replace(UUID, uuid => uuid.toUpperCase())
    const [lower, upper] = [JSON.parse(withUuids), JSON.parse(inUpperCase)]
    // The values of a record are the CRM's.
    if (feed.table === 'crm_records') upper.fields = lower.fields
    expect(parse(upper)).toEqual(parse(lower))
  })

  test('an unknown field of the example is kept and reported', () => {
    const { item, said } = parse({ ...(example as object), nobody_knows: { this: 1 } })
    expect(said).toEqual([`${table.name}.nobody_knows: unknown field`])
    expect(item?.extra).toBe('{"nobody_knows":{"this":1}}')
  })
})

describe.each(listFeeds)('the example of $name', ({ feed, example }) => {
  test('the example is parsed without drift and without rejects', () => {
    const said: string[] = []
    const answer = entity('answer', {
      about: 'An answer.',
      key: ['id'],
      columns: { id: requestKey('What was asked for.') },
      children: [{ table: tableNamed(feed.table), list: ['rows'], items: 'object' }],
    })
    const report = {
      drift: (_table: string, field: string) => said.push(field),
      reject: () => said.push('rejected'),
    }
    const rows = compileParser(answer)({ rows: [example, example] }, report, 'id')?.children.get(feed.table)
    expect(said).toEqual([])
    expect(rows?.map(({ extra }) => extra)).toEqual([null, null])
  })
})

/** Columns that are named or used like ids and are none of the API's, or whose case means something. */
const NO_IDS: Readonly<Record<string, string>> = {
  header_message_id: 'of the e-mail',
  mail_id: 'follows from it',
  record_id: 'of the CRM itself',
  crm_record_id: 'of the CRM itself',
  object: 'a name',
  relation_target_object: 'a name',
  id: 'a number, or a digest of the program',
}

describe('the columns', () => {
  test.each([...TABLES.values()].map(placed => [placed.table.name, placed] as const))(
    'every id in %s is declared as one',
    (name, placed) => {
      const undeclared = Object.entries(placed.table.columns).flatMap(([column, { refersTo = [] }]) => {
        const isOne = /(^|_)ids?$/.test(column) || refersTo.some(target => target.endsWith('.id'))
        return isOne && !hasIds(placed, column) ? [column] : []
      })
      expect(undeclared.filter(column => NO_IDS[column] === undefined)).toEqual([])
      const withoutId = ['access_logs', 'bot_definition', 'integrations']
      if (undeclared.includes('id')) expect(withoutId).toContain(name)
      if (undeclared.includes('record_id')) expect(name).toBe('meeting_crm_records')
    },
  )
})

describe('the feeds', () => {
  test.each(FEEDS)('the feed $name has a path of the specification', ({ feed }) => {
    const path = 'list' in feed ? feed.list.path : feed.read.path
    expect(path).toMatch(/^\/v[12]\//)
  })

  test.each(FEEDS)('the feed $name has an example and names existing tables', ({ feed, example }) => {
    expect(example).toBeDefined()
    const scopes = feed.mode === 'snapshot' && feed.scope ? [feed.scope.table] : []
    const pending = feed.mode === 'item' && feed.pending ? [feed.pending.table] : []
    for (const table of [feed.table, ...scopes, ...pending]) expect([...TABLES.keys()]).toContain(table)
  })

  test.each(FEEDS)('the feed $name uses existing columns of its table', ({ feed }) => {
    const { columns } = tableNamed(feed.table)
    if (feed.mode === 'timeline' || feed.mode === 'periodic')
      expect(columns[feed.time]?.kind).toBe('timestamp')
    const followUps = 'followUps' in feed ? (feed.followUps ?? []) : []
    for (const followUp of followUps) {
      const { key, sort } = 'records' in followUp ? { key: followUp.at, sort: undefined } : followUp
      for (const column of [key, ...(sort ? [sort] : []), ...Object.keys(followUp.when ?? {})]) {
        expect(Object.keys(columns)).toContain(column)
      }
    }
  })

  test.each(FEEDS)('the feed $name points at records by existing columns', ({ feed }) => {
    const followUps = 'followUps' in feed ? (feed.followUps ?? []) : []
    for (const followUp of followUps) {
      if (!('records' in followUp)) continue
      const { child = feed.table, object, key, prefer = {} } = followUp.records
      expect(Object.keys(tableNamed(child).columns)).toEqual(
        expect.arrayContaining([object, key, ...Object.keys(prefer)]),
      )
    }
  })

  test('every cause names an existing feed', () => {
    const names = FEEDS.map(({ name }) => name)
    const followUps = FEEDS.flatMap(({ feed }) => ('followUps' in feed ? (feed.followUps ?? []) : []))
    expect(names).toEqual(expect.arrayContaining(followUps.map(({ feed }) => feed)))
  })
})
