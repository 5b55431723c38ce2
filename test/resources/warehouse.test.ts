import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CATALOG, TABLES } from '../../src/catalog/catalog.ts'
import { RESOURCE_NAMES } from '../../src/declare/resource-names.ts'
import { isDerived } from '../../src/dictionary/report-tables.ts'
import { openAt, type TemporaryStore, withShortcuts } from '../store/temporary-store.ts'
import {
  CHILD_TABLES,
  ENTITY_TABLES,
  LIST_TABLES,
  promised,
  REPORT_TABLES,
  RESOURCES,
  SYNC_TABLES,
  VIEWS,
} from './contract.ts'

const UNDERSCORED = ['_first_seen_at', '_synced_at', '_changed_at', '_deleted_at', '_extra']
const ALL_TABLES = { ...ENTITY_TABLES, ...CHILD_TABLES, ...LIST_TABLES }

interface ColumnInfo {
  name: string
  type: string
}

let folder: string
let opened: TemporaryStore

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'parley-warehouse-'))
  const path = join(folder, 'parley.db')
  opened = withShortcuts(openAt(path), folder, path)
})

afterAll(() => {
  opened.close()
  rmSync(folder, { recursive: true })
})

const warehouse = () => opened
const columnsOf = (name: string) =>
  warehouse().all(`SELECT name, type FROM pragma_table_xinfo('${name}')`) as unknown as ColumnInfo[]
const namesOf = (name: string) => columnsOf(name).map(column => column.name)
const promisedNames = (name: string) => namesOf(name).filter(column => !column.startsWith('_'))

describe('the tables of the warehouse', () => {
  test.each(Object.entries(ALL_TABLES))('the table %s has exactly the promised columns', (name, line) => {
    expect(promisedNames(name).sort()).toEqual(promised(line).columns.sort())
  })

  test('the warehouse has only the promised tables and those of the sync state', () => {
    const tables = warehouse()
      .column("SELECT name FROM sqlite_master WHERE type = 'table'")
      .filter(name => !/^(_|sync_|sqlite_|data_dictionary$|parley_questions$)/.test(String(name)))
      .filter(name => !(String(name) in REPORT_TABLES))
    expect(tables.sort()).toEqual(Object.keys(ALL_TABLES).sort())
  })

  test.each(Object.keys(ENTITY_TABLES))('the table %s has the five columns of an entity', name => {
    expect(namesOf(name)).toEqual(expect.arrayContaining(UNDERSCORED))
  })

  test.each(Object.keys(CHILD_TABLES))(
    'the table %s has a column for unknown fields and no times of its own',
    name => {
      expect(namesOf(name).filter(column => UNDERSCORED.includes(column))).toEqual(['_extra'])
    },
  )

  test.each(Object.keys(LIST_TABLES))('the table %s has none of the five columns', name => {
    expect(namesOf(name).filter(column => UNDERSCORED.includes(column))).toEqual([])
  })

  test.each(Object.entries(ALL_TABLES))('the key of %s is unique, never null, and indexed', (name, line) => {
    const { key } = promised(line)
    const store = warehouse()
    const unique = store
      .column(`SELECT name FROM pragma_index_list('${name}') WHERE "unique" AND NOT partial`)
      .map(index => store.column(`SELECT name FROM pragma_index_info('${index}') ORDER BY seqno`))
    const primary = store.column(`SELECT name FROM pragma_table_info('${name}') WHERE pk > 0 ORDER BY pk`)
    expect([primary, ...unique]).toContainEqual(key)
    const nullable = store
      .column(`SELECT name FROM pragma_table_info('${name}') WHERE NOT "notnull" AND NOT pk`)
      .filter(column => key.includes(String(column)))
    expect(nullable).toEqual([])
  })

  test('the warehouse has STRICT tables only, but for those that are computed', () => {
    const loose = warehouse().column(
      "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND NOT strict AND name NOT GLOB 'sqlite_*' AND name NOT GLOB '__drizzle*'",
    )
    expect(loose.filter(name => !isDerived(String(name)))).toEqual([])
  })

  test.each(Object.entries(ALL_TABLES))(
    'the view live_%s has the promised columns and none with an underscore',
    (name, line) => {
      expect(namesOf(`live_${name}`).sort()).toEqual(promised(line).columns.sort())
      expect(warehouse().all(`SELECT * FROM live_${name}`)).toEqual([])
    },
  )

  test.each(Object.entries(VIEWS))('the view %s has exactly the promised columns', (name, line) => {
    expect(namesOf(name)).toEqual(line.split(' '))
    expect(warehouse().column(`SELECT type FROM sqlite_master WHERE name = '${name}'`)).toEqual(['view'])
    warehouse().all(`SELECT * FROM ${name}`)
  })

  test.each(Object.entries(REPORT_TABLES))(
    '%s for reports has exactly the promised columns',
    (name, line) => {
      expect(namesOf(name)).toEqual(line.split(' '))
    },
  )

  test.each(Object.entries(SYNC_TABLES))('the table %s has exactly the promised columns', (name, line) => {
    expect(promisedNames(name).sort()).toEqual(line.split(' ').sort())
  })

  test('times, texts and JSON are stored as text and booleans as integers', () => {
    for (const [name, { table }] of TABLES) {
      const types = new Map(columnsOf(name).map(({ name: column, type }) => [column, type]))
      for (const [column, { kind }] of Object.entries(table.columns)) {
        const expected = { integer: 'INTEGER', boolean: 'INTEGER', real: 'REAL' }[String(kind)] ?? 'TEXT'
        expect([name, column, types.get(column)]).toEqual([name, column, expected])
      }
    }
  })

  test('every table and every column has an explanation', () => {
    for (const { table } of TABLES.values()) {
      expect(table.about).toMatch(/^\S.+/s)
      for (const [name, { about }] of Object.entries(table.columns)) {
        expect([table.name, name, about]).toEqual([table.name, name, expect.stringMatching(/^\S.+/s)])
      }
    }
  })

  test('sync_status shows every resource before any read', () => {
    expect(warehouse().column('SELECT resource FROM sync_status').sort()).toEqual([...RESOURCES].sort())
    expect(warehouse().column('SELECT DISTINCT state FROM sync_status')).toEqual(['backfilling'])
  })
})

describe('the resources of the catalogue', () => {
  test('the catalogue has the promised resources', () => {
    expect([...RESOURCE_NAMES]).toEqual(RESOURCES)
    expect(CATALOG.map(({ name }) => name).sort()).toEqual([...RESOURCES].sort())
  })

  test('the catalogue has every resource after its parents', () => {
    CATALOG.forEach(({ parents }, index) => {
      const before = CATALOG.slice(0, index).map(({ name }) => name)
      expect(before).toEqual(expect.arrayContaining([...parents]))
    })
  })
})
