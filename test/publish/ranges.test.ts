import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ExportTable } from '../../src/export/export-tables.ts'
import {
  createPartReader,
  FIRST_RANGE,
  type PartReader,
  rangesOfLostKeys,
} from '../../src/publish/row-ranges.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import type { Sqlite, StoredCell } from '../../src/store/database/sqlite-types.ts'
import { runs } from '../support/effort.ts'

type Key = readonly [StoredCell, StoredCell]

const LIMITS = { first: 3, grown: 6 }

const TABLE: ExportTable = {
  name: 'keyed',
  folder: 'keyed',
  resource: null,
  columns: [
    { name: 'a', kind: 'text' },
    { name: 'b', kind: 'text' },
  ],
  rows: { from: '"keyed" t', order: 't."a", t."b"' },
}

/** A table whose key is (a, b), with these rows. */
function keyed(keys: readonly Key[]) {
  const db = openSqlite(':memory:')
  db.exec('CREATE TABLE keyed (a, b)')
  const add = db.prepare(
    'INSERT INTO keyed SELECT @a, @b WHERE NOT EXISTS (SELECT 1 FROM keyed WHERE a IS @a AND b IS @b)',
  )
  for (const [a, b] of keys) add.run({ a, b })
  return db
}

/** All rows by part, in their order. */
function partsOf(reader: PartReader): Map<string, StoredCell[][]> {
  const parts = new Map<string, StoredCell[][]>()
  for (const row of reader.rows('all')) {
    const part = String(row.pop())
    parts.set(part, [...(parts.get(part) ?? []), row])
  }
  return parts
}

/** The same, read part by part. */
function readOneByOne(reader: PartReader, names: readonly string[]): Map<string, StoredCell[][]> {
  return new Map(
    names.map(name => {
      const rows = [...reader.of(name, names)]
      expect(new Set(rows.map(row => row.pop()))).toEqual(new Set([name]))
      return [name, rows]
    }),
  )
}

const text = fc.string({ unit: 'binary', maxLength: 3 })
const whole = fc.oneof(fc.bigInt(-3n, 3n), fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n))
const cells: Readonly<Record<string, fc.Arbitrary<StoredCell>>> = {
  texts: text,
  integers: whole,
  'texts and NULLs': fc.option(text, { freq: 2 }),
  'values of every type': fc.option(
    fc.oneof(text, whole, fc.double({ noNaN: true, noDefaultInfinity: true })),
  ),
}

describe('the ranges of a table', () => {
  test.each(Object.entries(cells))(
    'with keys of %s, ranges that are read one by one have the rows of a read of the whole table',
    (_, cell) => {
      const keys = fc.array(fc.tuple(cell, cell), { maxLength: 30 })
      fc.assert(
        fc.property(keys, keys, fc.array(fc.nat(30), { maxLength: 15 }), (before, added, removed) => {
          const db = keyed(before)
          let known: string[] = []
          for (const change of ['none', 'some', 'none']) {
            if (change === 'some') {
              const all = db.prepare('SELECT rowid FROM keyed ORDER BY a, b').pluck().all()
              for (const place of removed) db.prepare('DELETE FROM keyed WHERE rowid = ?').run(all[place])
              for (const [a, b] of added)
                db.prepare(
                  'INSERT INTO keyed SELECT @a, @b WHERE NOT EXISTS (SELECT 1 FROM keyed WHERE a IS @a AND b IS @b)',
                ).run({ a, b })
            }
            const reader = createPartReader(db, TABLE, known, LIMITS)
            const whole = partsOf(reader)
            const rows = db.prepare('SELECT a, b FROM keyed ORDER BY a, b').raw().safeIntegers().all()
            expect([...whole.values()].flat()).toEqual(rows)
            const names = [...whole.keys()]
            expect(readOneByOne(reader, names)).toEqual(whole)
            // Ranges are added where one has grown, leave with all their rows, and have no name of a row that is gone.
            expect(rangesOfLostKeys(db, TABLE, names)).toEqual([])
            const isStable = change === 'none' && known.length > 0
            if (isStable) expect(names).toEqual(known)
            known = names
          }
          db.close()
        }),
        { numRuns: runs(60) },
      )
    },
  )

  const letters = (text: string): Key[] => [...text].map(letter => [letter, letter])
  const shape = (db: Sqlite, known: readonly string[]) =>
    [...partsOf(createPartReader(db, TABLE, known, LIMITS))].map(
      ([name, rows]) => [name, rows.map(([a]) => a).join('')] as const,
    )

  test('rows before, between and after the ranges join the range below them', () => {
    const first = shape(keyed(letters('dehikl')), [])
    expect(first.map(([, rows]) => rows)).toEqual(['deh', 'ikl'])
    const known = first.map(([name]) => name)
    const grown = shape(keyed(letters('adehhikklz')), known)
    expect(grown).toEqual([
      [known[0], 'adeh'],
      [known[1], 'iklz'],
    ])
  })

  test('a range that has grown too large is cut, and its neighbours stay', () => {
    const known = shape(keyed(letters('abcxyz')), []).map(([name]) => name)
    const grown = shape(keyed(letters('abcdefghijxyz')), known)
    expect(grown.map(([, rows]) => rows)).toEqual(['abcdef', 'ghij', 'xyz'])
    expect([grown[0]?.[0], grown[2]?.[0]]).toEqual(known)
  })

  test('a range without rows is gone, and later rows of its keys join the range below', () => {
    const known = shape(keyed(letters('abcdefxyz')), []).map(([name]) => name)
    const emptied = shape(keyed(letters('abcxyz')), known)
    expect(emptied).toEqual([
      [known[0], 'abc'],
      [known[2], 'xyz'],
    ])
    const later = shape(
      keyed(letters('abcexyz')),
      emptied.map(([name]) => name),
    )
    expect(later.map(([, rows]) => rows)).toEqual(['abce', 'xyz'])
  })

  test('a range whose first row is gone gets the name of the next row, and its neighbours stay', () => {
    const known = shape(keyed(letters('abcdefxyz')), []).map(([name]) => name)
    expect(known).toEqual([FIRST_RANGE, '["d","d"]', '["x","x"]'])
    const db = keyed([...letters('abcf'), ['e', null], ...letters('xyz')])
    expect(rangesOfLostKeys(db, TABLE, known)).toEqual(['["d","d"]'])
    expect(shape(db, known)).toEqual([
      [FIRST_RANGE, 'abc'],
      ['["e"]', 'ef'],
      ['["x","x"]', 'xyz'],
    ])
    expect(shape(keyed(letters('abcdefxyz')), [FIRST_RANGE, '["e"]', '["x","x"]'])).toEqual([
      [FIRST_RANGE, 'abcd'],
      ['["e"]', 'ef'],
      ['["x","x"]', 'xyz'],
    ])
  })

  test('no range is cut at a key with a NULL', () => {
    const keys: Key[] = [...'abcdefgh'].map(letter => [letter, letter > 'c' && letter < 'f' ? null : letter])
    expect(shape(keyed(keys), []).map(([, rows]) => rows)).toEqual(['abcde', 'fgh'])
  })
})

describe('the parts that notes name', () => {
  const TIMED: ExportTable = {
    ...TABLE,
    rows: { from: '"keyed" t', order: 't."b"', time: { column: 'b', sql: 't."b"', fromAll: '"keyed" t' } },
  }
  const months = (known: readonly (string | null)[], notes: readonly string[]) =>
    createPartReader(keyed([]), TIMED, known).noted(notes)
  const ranges = (known: readonly Key[], notes: readonly string[]) =>
    createPartReader(
      keyed([]),
      TABLE,
      known.map(key => JSON.stringify(key)),
    ).noted(notes)

  test('a note of a month names it, and rows without a time where there were any, since they may get one', () => {
    expect(months(['2026-01'], ['2026-02', ''])).toEqual(['2026-02', null])
    expect(months(['2026-01', null], ['2026-01'])).toEqual(['2026-01', null])
    expect(months(['2026-01', null], [])).toEqual([])
    expect(months(['2026-01'], ['*'])).toBe('all')
  })

  test.each<[note: string, named: number[]]>([
    ['["a","xx"]', [0]],
    ['["b","aa"]', [0]],
    ['["b","mm"]', [0, 1]],
    ['["b","mn"]', [1]],
    ['["c","aa"]', [1]],
    ['["c","zz"]', [1, 2]],
    ['["d","aa"]', [2]],
  ])('a note of the beginning %s of a key names the ranges that may hold such keys', (note, named) => {
    const known: Key[] = [
      ['b', 'mm5'],
      ['c', 'zz5'],
    ]
    const all = [FIRST_RANGE, ...known.map(key => JSON.stringify(key))]
    expect(ranges(known, [note])).toEqual(named.map(place => all[place]))
    expect(ranges(known, ['*'])).toBe('all')
  })
})
