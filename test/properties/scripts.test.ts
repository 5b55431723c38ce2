import fc from 'fast-check'
import { expect, test } from 'vitest'
import { duckdbScript } from '../../src/commands/schema/duckdb.ts'
import { ENGINES } from '../../src/commands/schema/engine-dialects.ts'
import { engineViews } from '../../src/commands/schema/engine-views.ts'
import { type CrmObjectDescription, describedCrmTables } from '../../src/dictionary/crm-tables.ts'
import { DICTIONARY } from '../../src/dictionary/dictionary.ts'
import { columnsForFields, labelsOf } from '../../src/store/crm/columns.ts'
import { nameFor } from '../../src/store/crm/sql.ts'
import { readDatabase } from '../../src/store/file/open.ts'
import { SEARCH_KINDS } from '../../src/store/search/query.ts'
import { runSearch } from '../../src/store/search/run-search.ts'
import { build, putMessage } from '../store/searchable.ts'
import { temporaryStore } from '../store/temporary-store.ts'

/** Names and texts of others never become statements or control characters of the SQL that parley prints. */

const hostile = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'binary', maxLength: 3 }),
      fc.constantFrom(
        ...[
          "'",
          '"',
          '`',
          '\\',
          ';',
          ';\n',
          '--',
          '/*',
          '*/',
          '\u0000',
          '\u001b[2J',
          '\n',
          '\r',
          '\u0085',
          '$$',
        ],
        ...[
          "'; CREATE TABLE injected AS SELECT 1; --",
          '"; DROP TABLE x; --',
          '`; DROP VIEW y; --',
          '\u2028',
          '\u202e',
        ],
      ),
    ),
    { maxLength: 4 },
  )
  .map(parts => parts.join(''))

interface RawObject {
  name: string
  label: string | null
  fields: { name: string; label: string | null; isRelation: boolean }[]
  /** The names as earlier versions gave them. */
  isRaw: boolean
}

const rawObject: fc.Arbitrary<RawObject> = fc.record({
  name: hostile,
  label: fc.option(hostile),
  fields: fc.uniqueArray(fc.record({ name: hostile, label: fc.option(hostile), isRelation: fc.boolean() }), {
    selector: ({ name }) => name,
    maxLength: 4,
  }),
  isRaw: fc.boolean(),
})

function described({ name, label, fields, isRaw }: RawObject, place: number): CrmObjectDescription {
  const known = fields.map(field => ({ ...field, type: field.label, isActive: true }))
  const columns = columnsForFields(known, new Map())
  const labels = labelsOf(columns, known)
  const table = `${isRaw ? `crm_${name.replaceAll('\u0000', '')}` : nameFor(name)}${place}`
  return {
    name,
    label,
    table,
    liveView: `live_${table}`,
    labelledView: `labelled_${table}`,
    fields: known.map((field, at) => ({
      ...field,
      kind: at % 2 === 0 ? 'text' : 'any',
      column: isRaw ? `${field.name}${at}` : (columns[at]?.column ?? ''),
      labelledColumn: isRaw ? `${field.label}${at}` : (labels[at] ?? ''),
      refersTo: field.isRelation ? [`${table}.id`] : [],
    })),
  }
}

/** The statements without comments, quoted texts and names. @param escapes whether a backslash escapes in these quotes */
function statements(script: string, escapes: string): string[] {
  const found: string[] = []
  let current = ''
  for (let place = 0; place < script.length; place += 1) {
    const character = script.charAt(place)
    if (script.startsWith('--', place)) place = endOf(script, place, '\n')
    else if (script.startsWith('/*', place)) place = endOf(script, place + 2, '*/') + 1
    else if (`'"\``.includes(character)) place = endOfQuotes(script, place, escapes.includes(character))
    else if (character === ';') {
      found.push(current.trim())
      current = ''
    } else current += character
  }
  expect(current.trim()).toBe('')
  return found
}

function endOf(script: string, place: number, end: string): number {
  const found = script.indexOf(end, place)
  return found < 0 ? script.length : found
}

function endOfQuotes(script: string, from: number, escapes: boolean): number {
  const quote = script.charAt(from)
  for (let place = from + 1; place < script.length; place += 1) {
    if (escapes && script[place] === '\\') place += 1
    else if (script[place] === quote && script[place + 1] === quote) place += 1
    else if (script[place] === quote) return place
  }
  throw new Error('a quote is open')
}

/** Line feeds are parley's own. */
const UNSAFE = /[^\P{Cc}\n]|[\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u

const KINDS = {
  spark: { starts: /^CREATE OR REPLACE TEMPORARY VIEW\s+AS\s+SELECT\b/, escapes: '' },
  trino: { starts: /^CREATE OR REPLACE VIEW\s+AS\s+SELECT\b/, escapes: '' },
  clickhouse: { starts: /^CREATE OR REPLACE VIEW\s+AS\s+SELECT\b/, escapes: "'`" },
} as const

test.each(ENGINES)(
  'no name of the CRM adds a statement or a control character to the script for %s',
  engine => {
    const { starts, escapes } = KINDS[engine]
    // To the parser of Spark, a backslash before a semicolon stands for the semicolon.
    const parsed = (script: string) => (engine === 'spark' ? script.replaceAll('\\;', ';') : script)
    const own = statements(parsed(engineViews(engine, [])), escapes).length
    fc.assert(
      fc.property(fc.array(rawObject, { maxLength: 3 }), raw => {
        const script = engineViews(engine, raw.map(described))
        expect(script).not.toMatch(UNSAFE)
        const all = statements(parsed(script), escapes)
        expect(all).toHaveLength(own + 2 * raw.length)
        for (const statement of all) expect(statement).toMatch(starts)
      }),
    )
  },
)

test('no name of the CRM adds a statement or a control character to the script for DuckDB', () => {
  const starts =
    /^(CREATE OR REPLACE VIEW\s+AS\s+SELECT\b|COMMENT ON (VIEW|COLUMN)\b|SET\b|INSTALL sqlite$|LOAD sqlite$|ATTACH IF NOT EXISTS\b)/
  const own = statements(duckdbScript('parley.db', DICTIONARY), '').length
  fc.assert(
    fc.property(fc.array(rawObject, { maxLength: 3 }), raw => {
      const tables = raw.map(described).flatMap(describedCrmTables)
      const printed = tables.filter(({ name, columns }) =>
        [name, ...columns.map(column => column.name)].every(one => !/[\n]/.test(one) && !UNSAFE.test(one)),
      )
      const script = duckdbScript('parley.db', [...DICTIONARY, ...tables])
      expect(script).not.toMatch(UNSAFE)
      const all = statements(script, '')
      const comments = printed.flatMap(({ columns }) => columns.map(({ kind }) => (kind === 'any' ? 2 : 1)))
      const added = comments.reduce<number>((sum, count) => sum + count, 2 * printed.length)
      expect(all).toHaveLength(own + added)
      for (const statement of all) expect(statement).toMatch(starts)
    }),
  )
})

test('the SQL of a search has no control character, of the terms or of texts in the index, and finds the same', async () => {
  const store = temporaryStore()
  const texts = [...fc.sample(hostile, { numRuns: 300, seed: 7 }), 'a\u001bc', 'a\u009b3', 'a\u0000b']
  for (const [at, text] of texts.entries()) putMessage(store, { id: `m${at}`, text })
  await build(store)
  // The arguments of a process have no NUL.
  const typed = ['a', "a'", '-', ';', "'", '\u001b', '\u202e', ...texts].filter(
    text => text.trim() !== '' && !text.includes('\0'),
  )
  for (const term of typed) {
    const question = { terms: [term], kinds: SEARCH_KINDS, limit: 1000 }
    const { sql, rows } = readDatabase({ path: store.path }, db => runSearch(db, question, { run: true }))
    expect(sql).not.toMatch(UNSAFE)
    expect(store.all(sql)).toEqual(rows)
  }
})
