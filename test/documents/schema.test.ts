import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { withSchema } from '../../drizzle/document.ts'
import { INTERNAL_TABLES, isInternal, SEARCH_TABLES } from '../../src/dictionary/sync-tables.ts'
import { openWarehouse } from '../../src/store/open-warehouse.ts'
import { emptyFolder } from '../cli/parley.ts'

const PAGE = new URL('../../drizzle/README.md', import.meta.url)
const page = readFileSync(PAGE, 'utf8')
const db = openWarehouse({ path: join(emptyFolder(), 'parley.db') })

/** Columns by table and view, as the page tells them. */
const told = new Map(
  page
    .split(/^#### /m)
    .slice(1)
    .map(section => {
      const [name = '', ...lines] = section.split('\n')
      return [name, lines.flatMap(line => /^\| `(\w+)` /.exec(line)?.[1] ?? [])]
    }),
)

const columnsOf = (table: string): string[] =>
  db.prepare('SELECT name FROM pragma_table_xinfo(?)').pluck().all(table) as string[]

/** What the page describes once for all tables, or calls internal. */
const isGeneral = (name: string): boolean => name.startsWith('_')

test('the schema page agrees with the declarations; npm run schema writes it', () => {
  expect(withSchema(page)).toBe(page)
})

test('the schema page has every table and view except internal ones and those of live rows', () => {
  const names = db
    .prepare(
      "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'live\\_%' ESCAPE '\\'",
    )
    .pluck()
    .all() as string[]
  expect([...told.keys()].sort()).toEqual(names.filter(name => !isInternal(name)).sort())
})

test('the schema page says which tables data_dictionary leaves out, and describes those for searching', () => {
  const sectionOf = (title: string) => page.split(/^## /m).find(section => section.startsWith(`${title}\n`))
  const named = /without a row there, such as `(\w+)`, is internal/.exec(
    sectionOf('What a column means') ?? '',
  )
  expect(Object.keys(INTERNAL_TABLES)).toContain(named?.[1])
  for (const name of [...Object.keys(SEARCH_TABLES), 'name', 'indexed_up_to'])
    expect(sectionOf('Search')).toContain(`\`${name}\``)
})

test.each([...told])('the schema page has every column of %s', (table, columns) => {
  expect(columns).toEqual(columnsOf(table).filter(name => !isGeneral(name)))
})

test('examples of the schema page add up or rank amounts within a currency, or as amount_reporting', () => {
  const blocks = [...page.matchAll(/^```\w[^\n]*\n(.*?)^```/gms)].map(([, block = '']) => block)
  const examples = blocks.filter(block => /(sum\(|ORDER BY|agg\().*\bamount\b|\bamount\b.*agg\(/.test(block))
  expect(examples.length).toBeGreaterThan(2)
  expect(examples.filter(block => !block.includes('currency'))).toEqual([])
})

test('every link within the schema page leads to one of its headings', () => {
  const headings = [...page.matchAll(/^#+ (.*)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^\w -]/g, '')
      .replaceAll(' ', '-'),
  )
  const links = [...page.matchAll(/\]\(#([^)]*)\)/g)].map(([, anchor = '']) => anchor)
  expect(links.length).toBeGreaterThan(told.size)
  expect(links.filter(anchor => headings.filter(heading => heading === anchor).length !== 1)).toEqual([])
})
