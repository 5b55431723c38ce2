import { join } from 'node:path'
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { duckdbScript, duckdbStatements } from '../../src/commands/schema/duckdb.ts'
import { describedCrmTables } from '../../src/dictionary/crm-tables.ts'
import type { DescribedTable } from '../../src/dictionary/described-table.ts'
import { DICTIONARY } from '../../src/dictionary/dictionary.ts'
import { quote } from '../../src/store/database/sql.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'
import { openWarehouse } from '../../src/store/open-warehouse.ts'
import { emptyFolder } from '../cli/parley.ts'
import { makeDuckdbViews } from '../support/duckdb-views.ts'
import { storeExamples } from './example-rows.ts'

const WIDE = 'a "quoted" name, \'so\' to speak'

const CRM: readonly DescribedTable[] = describedCrmTables({
  name: 'deal',
  label: '商談',
  table: 'crm_deal',
  liveView: 'live_crm_deal',
  labelledView: 'labelled_crm_deal',
  fields: [
    {
      name: 'amount',
      label: '金額',
      type: 'currency',
      kind: 'any',
      column: 'amount',
      labelledColumn: '金額',
      isRelation: false,
      refersTo: [],
    },
    {
      name: WIDE,
      label: null,
      type: null,
      kind: 'text',
      column: WIDE,
      labelledColumn: WIDE,
      isRelation: false,
      refersTo: [],
    },
  ],
})

const ALL = [...DICTIONARY, ...CRM]

let sqlite: Sqlite
let connection: DuckDBConnection
let instance: DuckDBInstance

beforeAll(async () => {
  sqlite = openWarehouse({ path: join(emptyFolder(), 'parley.db') })
  storeExamples(sqlite)
  makeDeals(sqlite)
  instance = await DuckDBInstance.create(':memory:')
  connection = await instance.connect()
  await makeDuckdbViews(connection, sqlite, ALL, { comments: true })
})

afterAll(() => {
  connection.closeSync()
  instance.closeSync()
  sqlite.close()
})

function makeDeals(db: Sqlite): void {
  const columns = `"id" TEXT PRIMARY KEY NOT NULL, "amount" ANY, ${quote(WIDE)} TEXT, "created_at" TEXT, "updated_at" TEXT, "_deleted_at" TEXT`
  db.exec(`CREATE TABLE crm_deal (${columns}) STRICT;
    INSERT INTO crm_deal VALUES ('d1', 12.5, 'x', '2026-01-05T09:00:00.000Z', NULL, NULL);
    INSERT INTO crm_deal VALUES ('d2', '123456789012345678901', NULL, NULL, NULL, NULL);
    CREATE VIEW live_crm_deal AS SELECT "id", "amount", ${quote(WIDE)}, "created_at", "updated_at" FROM crm_deal;
    CREATE VIEW labelled_crm_deal AS SELECT "id", "amount" AS "金額", ${quote(WIDE)}, "created_at", "updated_at" FROM crm_deal;`)
}

const rows = async (sql: string) => (await connection.runAndReadAll(sql)).getRowObjectsJson()

const TYPES: Readonly<Record<string, string>> = {
  text: 'VARCHAR',
  timestamp: 'TIMESTAMP WITH TIME ZONE',
  date: 'DATE',
  json: 'JSON',
  integer: 'BIGINT',
  boolean: 'BOOLEAN',
  real: 'DOUBLE',
  any: 'DOUBLE',
}

describe('the views for DuckDB', () => {
  test.each(ALL.map(table => [table.name, table] as const))(
    'the DuckDB view %s has its columns with their types',
    async (name, { columns }) => {
      const described = await rows(
        `SELECT column_name, data_type FROM duckdb_columns() WHERE database_name = 'memory' AND table_name = '${name}' ORDER BY column_index`,
      )
      expect(described).toEqual(
        columns.flatMap(({ name: own, kind }) => [
          { column_name: own, data_type: TYPES[kind] },
          ...(kind === 'any' ? [{ column_name: `${own}_exact`, data_type: 'VARCHAR' }] : []),
        ]),
      )
    },
  )

  test.each(
    DICTIONARY.filter(({ form, name }) => form === 'table' && name !== 'data_dictionary').map(
      ({ name }) => name,
    ),
  )('the DuckDB view %s loses no value of the examples', async name => {
    const [found = {}] = await rows(`SELECT * FROM main.${quote(name)}`)
    const lost = Object.entries(found).filter(([column, value]) => value === null && column !== '_deleted_at')
    expect(Object.keys(found).length).toBeGreaterThan(0)
    expect(lost).toEqual([])
  })

  test('the live rows in DuckDB are those of the warehouse', async () => {
    for (const { name } of DICTIONARY) {
      if (!name.startsWith('live_')) continue
      const expected = sqlite
        .prepare(`SELECT count(*) FROM ${quote(name)}`)
        .pluck()
        .get()
      expect(await rows(`SELECT count(*)::INTEGER AS rows FROM main.${quote(name)}`), name).toEqual([
        { rows: expected },
      ])
    }
  })

  test('timestamps, booleans, dates and JSON have their own types in DuckDB', async () => {
    expect(
      await rows(
        `SELECT date_diff('minute', start_time, end_time)::INTEGER AS minutes, strftime(start_time, '%Y-%m') AS month,
           transcript_languages ->> 0 AS language FROM live_meetings`,
      ),
    ).toEqual([{ minutes: 45, month: '2026-03', language: 'ja' }])
    expect(
      await rows('SELECT NOT completed AS open, due_date + 7 AS later FROM live_meeting_action_items'),
    ).toEqual([{ open: true, later: '2026-03-18' }])
    expect(
      await rows("SELECT sum((fields ->> 'amount')::BIGINT)::INTEGER AS amount FROM live_crm_records"),
    ).toEqual([{ amount: 1_200_000 }])
    expect(await rows('SELECT text, end_time - start_time AS took FROM transcript_words LIMIT 1')).toEqual([
      { text: 'Good', took: 0.25 },
    ])
  })

  test('number fields of the CRM are numbers in DuckDB, whatever their names', async () => {
    expect(
      await rows(
        `SELECT id, "金額", "金額_exact", ${quote(WIDE)} AS wide FROM labelled_crm_deal ORDER BY id`,
      ),
    ).toEqual([
      { id: 'd1', 金額: 12.5, 金額_exact: null, wide: 'x' },
      { id: 'd2', 金額: 123456789012345680000, 金額_exact: '123456789012345678901', wide: null },
    ])
  })

  test('the DuckDB views and their columns have comments', async () => {
    const [view] = await rows("SELECT comment FROM duckdb_views() WHERE view_name = 'members'")
    expect(view).toEqual({ comment: 'Members of the workspace. The API lists only active members.' })
    const [column] = await rows(
      "SELECT comment FROM duckdb_columns() WHERE database_name = 'memory' AND table_name = 'meetings' AND column_name = 'recording_duration'",
    )
    expect(column).toEqual({ comment: 'Length of the recording. Unit: not stated.' })
  })
})

describe('the script for DuckDB', () => {
  test('the script attaches the file read-only, whatever its name', () => {
    const { attach } = duckdbStatements("/data/o'clock.db", [])
    expect(attach).toEqual([
      'INSTALL sqlite;',
      'LOAD sqlite;',
      "ATTACH IF NOT EXISTS '/data/o''clock.db' AS parley_file (TYPE sqlite, READ_ONLY);",
    ])
  })

  test('each view of an attached table names a key column, so that DuckDB never asks for the rowid', () => {
    const { views } = duckdbStatements('parley.db', ALL)
    const attached = views.filter(sql => / FROM parley_file\./.test(sql))
    expect(attached.length).toBeGreaterThan(30)
    expect(attached.filter(sql => !/ FROM parley_file\."\w+" WHERE "\w+" IS NOT NULL;$/.test(sql))).toEqual(
      [],
    )
  })

  test('DuckDB parses the script from the first line to the last', async () => {
    const statements = await connection.extractStatements(duckdbScript('parley.db', ALL))
    expect(statements.count).toBeGreaterThan(500)
  })
})
