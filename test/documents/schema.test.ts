import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { withSchema } from '../../drizzle/document.ts'
import { TABLES } from '../../src/catalog.ts'
import { openDatabase } from '../../src/store/open.ts'
import { emptyFolder } from '../cli/parley.ts'

const PAGE = new URL('../../drizzle/README.md', import.meta.url)
const page = readFileSync(PAGE, 'utf8')
const db = openDatabase({ path: join(emptyFolder(), 'parley.db') })

/** What SQLite calls each type of the page. */
const DECLARED: Readonly<Record<string, string>> = {
  text: 'TEXT',
  timestamp: 'TEXT',
  date: 'TEXT',
  json: 'TEXT',
  integer: 'INTEGER',
  boolean: 'INTEGER',
  real: 'REAL',
}

/** Columns and types by table and view, as the page tells them. */
const told = new Map(
  page
    .split(/^#### /m)
    .slice(1)
    .map(section => {
      const [name = '', ...lines] = section.split('\n')
      const rows = lines.flatMap(line => [...line.matchAll(/^\| `(\w+)` +\| (\w+) +\|/g)])
      return [name, rows.map(([, column = '', type = '']) => ({ column, type }))]
    }),
)

const names = (type: string): string[] =>
  db.prepare('SELECT name FROM sqlite_master WHERE type = ? ORDER BY name').pluck().all(type) as string[]

const columnsOf = (table: string): { name: string; type: string }[] =>
  db.prepare('SELECT name, type FROM pragma_table_info(?)').all(table) as { name: string; type: string }[]

/** What the page describes once for all tables, or calls internal. */
const isGeneral = (name: string): boolean => name.startsWith('_')

test('the schema page says what the declarations say; npm run schema writes it', () => {
  expect(withSchema(page)).toBe(page)
})

test('the schema page has every table and view but the internal ones', () => {
  const internal =
    /^(live_|sqlite_|__drizzle|sync_(arrivals|erasures|requests|meta|resources|segments|seen|tasks|absences)$)/
  const public_ = [...names('table'), ...names('view')].filter(name => !internal.test(name))
  expect([...told.keys()].sort()).toEqual(public_.sort())
})

test.each([...told])('the schema page has every column of %s', (table, columns) => {
  const seen = columnsOf(table).filter(({ name }) => !isGeneral(name))
  const described = columns.filter(({ column }) => !isGeneral(column))
  expect(described.map(({ column }) => column).sort()).toEqual(seen.map(({ name }) => name).sort())
})

test.each([...names('table')].filter(name => told.has(name)))('the types of %s are those told', table => {
  const types = new Map(columnsOf(table).map(({ name, type }) => [name, type]))
  const described = told.get(table) ?? []
  expect(described.map(({ type }) => DECLARED[type])).toEqual(
    described.map(({ column }) => types.get(column)),
  )
})

test('every table of a resource has its live_ view without the underscore columns', () => {
  for (const name of TABLES.keys()) {
    const columns = columnsOf(`live_${name}`).map(column => column.name)
    expect(columns.length, name).toBeGreaterThan(0)
    expect(columns.filter(isGeneral), name).toEqual([])
  }
})
