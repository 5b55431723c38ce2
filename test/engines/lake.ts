import { readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, inject } from 'vitest'
import type { TestProject } from 'vitest/node'
import { systemClock } from '../../src/base/clock.ts'
import { createCatalogue } from '../../src/publish/catalogue/catalogue.ts'
import { openS3Reader } from '../../src/publish/storage/s3.ts'
import { folderReader, type TargetReader } from '../../src/publish/storage/target-reader.ts'
import type { Change } from '../../src/simulator/changes/change.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { parley } from '../cli/parley.ts'
import { firstWeek } from '../questions/first-week/world.ts'
import { startUntilClosed } from '../server/status-server.ts'
import { type Cell, CLOCK_TABLE, expectedTables, expectedViews, rowText } from '../support/published-cells.ts'
import { startTrial, type Trial } from '../support/trial.ts'
import { type Ceph, commandEnvironment, READER, REGION, startCeph } from './ceph.ts'
import type { Engine, TableRows } from './engine-process.ts'

/**
 * The tables that all engines read: a warehouse of the simulator's hostile world, published several times to a folder
 * and to a bucket of Ceph, and a catalogue of each. Columns are added, renamed and given another type in between. Made once,
 * before the tests. Each engine reads every value of the newest and the earlier publications, and the rows of every view.
 */
export interface Lake {
  /** The target, which is `lake` in its folder. */
  folder: string
  database: string
  /** The URLs of the catalogues. */
  catalogues: { folder: string; bucket: string }
  token: string
  /** A warehouse whose tables for reports are filled. */
  week: { database: string; catalogues: { folder: string; bucket: string }; tables: readonly string[] }
  /** What a reader of the bucket needs. */
  bucket: { name: string; endpoint: string; region: string; keyId: string; secret: string }
}

/** By publication, from 1. */
export type ExpectedPublications = readonly ExpectedPublication[]

export interface ExpectedPublication {
  tables: Readonly<Record<string, ExpectedRows>>
  views: Readonly<Record<string, ExpectedRows>>
}

export interface ExpectedRows {
  columns: string[]
  /** As sorted texts. Undefined where they depend on the time of the query. */
  rows?: string[]
}

declare module 'vitest' {
  export interface ProvidedContext {
    lake: Lake & { expected: string }
  }
}

/** @returns the lake, and what each of its publications shows */
export function lakeOfTests(): Lake & { publications: ExpectedPublications } {
  const lake = inject('lake')
  return { ...lake, publications: JSON.parse(readFileSync(lake.expected, 'utf8')) }
}

const BUCKET = 'lake-of-acme'
const TOKEN = "a-token'of-the-catalogue"

/** Fields whose names are taken, or mean something, in one engine or another. */
const ODD_FIELDS: readonly string[] = [
  ...['_file', '_pos', '_deleted', '_spec_id', '_partition', '_row_id', '_last_updated_sequence_number'],
  ...['_change_type', '_change_ordinal', '_commit_snapshot_id', '_FILE', '_deleted_2', 'file_path', 'pos'],
  ...[
    '$path',
    '$partition',
    '$file_modified_time',
    '$row_id',
    'filename',
    'file_row_number',
    'rowid',
    '_path',
  ],
  ...[
    'ı',
    'I',
    'İ',
    'ſ',
    's',
    'Σ',
    'ς',
    'ß',
    'ss',
    'K',
    'k',
    'tab\there',
    'line\nbreak',
    'bell\u0007',
    '\u202eright',
  ],
  ...['`', '\\', '{}', '$\u007bx}', '%', '🙂', "; -- '", '/*', 'select', 'a.b', ' ', 'é', 'e\u0301'],
]

const CHANGES: readonly (readonly Change[])[] = [
  ODD_FIELDS.map(field => ({ kind: 'addField', object: 'deal', field })),
  [
    { kind: 'delete', resource: 'messages', count: 12 },
    { kind: 'delete', resource: 'meetings', count: 1 },
    { kind: 'publish', resource: 'messages', count: 3 },
    { kind: 'edit', resource: 'crm_records', count: 6 },
    { kind: 'addField', object: 'deal', field: 'added later', type: 'decimal' },
    { kind: 'retypeField', object: 'deal', field: 'Group By', type: 'decimal' },
  ],
  [
    { kind: 'publish', resource: 'crm_records', count: 4 },
    { kind: 'edit', resource: 'crm_records', count: 6 },
    { kind: 'addField', object: 'deal', field: 'added last', type: 'datetime' },
    { kind: 'renameField', object: 'deal', field: 'added later', to: 'renamed' },
  ],
]

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const [ceph, trial] = await Promise.all([startCeph(), startTrial({ seed: 7 })])
  await ceph.send(`/${BUCKET}`, { method: 'PUT' })
  const folder = join(trial.database, '../lake')
  const publications: ExpectedPublication[] = []
  for (const changes of CHANGES) {
    await trial.simulator.changeAtOnce(changes)
    await backfillTwice(trial)
    await publish(trial.database, folder, {})
    await publish(trial.database, `s3://${BUCKET}/lake`, commandEnvironment(ceph))
    publications.push(expectedPublication(trial.database))
  }
  const expected = join(trial.database, '../expected.json')
  writeFileSync(expected, JSON.stringify(publications))
  const week = await firstWeek()
  const weekFolder = join(week.file, '../week')
  await publish(week.file, weekFolder, {})
  await publish(week.file, `s3://${BUCKET}/week`, commandEnvironment(ceph))
  const readers = [
    folderReader(folder),
    bucketReader(ceph, 'lake'),
    folderReader(weekFolder),
    bucketReader(ceph, 'week'),
  ]
  const servers = await Promise.all(
    readers.map(reader =>
      startUntilClosed({ catalogue: { catalogue: createCatalogue(reader, systemClock()), token: TOKEN } }),
    ),
  )
  const [ofFolder = '', ofBucket = '', weekOfFolder = '', weekOfBucket = ''] = servers.map(
    ({ server }) => `http://${server.address}/iceberg`,
  )
  project.provide('lake', {
    folder,
    database: trial.database,
    catalogues: { folder: ofFolder, bucket: ofBucket },
    token: TOKEN,
    week: {
      database: week.file,
      catalogues: { folder: weekOfFolder, bucket: weekOfBucket },
      tables: publishedNames(week.file),
    },
    bucket: {
      name: BUCKET,
      endpoint: ceph.url,
      region: REGION,
      keyId: READER.accessKeyId,
      secret: READER.secretAccessKey,
    },
    expected,
  })
  return async () => {
    await Promise.all(servers.map(server => server.close()))
    for (const reader of readers) reader.close()
    await Promise.all([trial.close(), ceph.close()])
  }
}

function bucketReader({ url }: Ceph, prefix: string): TargetReader {
  return openS3Reader({
    name: `s3://${BUCKET}/${prefix}`,
    bucket: BUCKET,
    prefix,
    endpoint: url,
    region: REGION,
    pathStyle: undefined,
    location: undefined,
    temporary: tmpdir(),
    credentials: { ...READER, sessionToken: undefined },
    clock: systemClock(),
    signal: new AbortController().signal,
    random: Math.random,
  })
}

function publishedNames(database: string): string[] {
  const db = openSqlite(database, { readonly: true })
  try {
    return expectedTables(db).map(({ folder }) => folder)
  } finally {
    db.close()
  }
}

/** A deletion needs a second complete pass. */
async function backfillTwice(trial: Trial): Promise<void> {
  for (let pass = 0; pass < 2; pass++) {
    const { status, stderr } = await trial.backfill()
    if (status !== 0) throw new Error(`The backfill ended with ${status}: ${stderr}`)
  }
}

async function publish(database: string, target: string, env: Record<string, string>): Promise<void> {
  const ended = await parley(['publish', target, '--database', database], { env })
  if (ended.status !== 0) throw new Error(`parley publish ended with ${ended.status}: ${ended.stderr}`)
}

function expectedPublication(database: string): ExpectedPublication {
  const db = openSqlite(database, { readonly: true })
  try {
    const tables = expectedTables(db).map(({ folder, columns, rows }): [string, ExpectedRows] => [
      folder,
      {
        columns: columns.map(({ name }) => name),
        ...(folder !== CLOCK_TABLE && { rows: sortedRows([...rows()]) }),
      },
    ])
    const views = expectedViews(db).map(({ name, columns, rows }): [string, ExpectedRows] => [
      name,
      { columns, rows: sortedRows(rows) },
    ])
    return { tables: Object.fromEntries(tables), views: Object.fromEntries(views) }
  } finally {
    db.close()
  }
}

export const sortedRows = (rows: readonly Cell[][]): string[] => rows.map(rowText).sort()

/** How an engine reads. */
export interface Reading {
  /** The rows of a table. @param snapshot undefined: the newest */
  read(table: string, snapshot?: number): Promise<TableRows>
  /** How the engine shows the name of a column. Default: as it is. */
  shown?(name: string): string
}

/** Every value of every table is that of SQLite in the newest publication. */
export async function expectNewest(reading: Reading): Promise<void> {
  const { publications } = lakeOfTests()
  const newest = publications.at(-1)?.tables ?? {}
  expect(Object.keys(newest).length).toBeGreaterThan(50)
  for (const [table, expected] of Object.entries(newest))
    expectRows(table, await reading.read(table), expected, reading.shown)
}

/** The same in each earlier publication, for the tables that have changed since. */
export async function expectEarlier(reading: Reading): Promise<void> {
  const { publications } = lakeOfTests()
  const { rows } = await reading.read('publications')
  const noted = rows.map(row => row.find(cell => String(cell).startsWith('{"')))
  const snapshots = noted.map(json => JSON.parse(String(json)) as Record<string, number>)
  expect(snapshots).toHaveLength(publications.length)
  for (const [place, { tables }] of publications.slice(0, -1).entries()) {
    const all = snapshots[place] ?? {}
    expect(Object.keys(all).sort()).toEqual(Object.keys(tables).sort())
    const changed = Object.entries(all).filter(([table, snapshot]) => snapshots.at(-1)?.[table] !== snapshot)
    expect(changed.length).toBeGreaterThan(2)
    for (const [table, snapshot] of changed)
      expectRows(`${table} at ${snapshot}`, await reading.read(table, snapshot), tables[table], reading.shown)
  }
}

/** The statements of what `parley schema` prints. */
export const statementsIn = (printed: string): string[] =>
  printed.split(/;\n+/).filter(text => text.trim() !== '')

/** Creates the views that `parley schema` prints. Their rows are those of SQLite's. */
export async function expectViews(
  engine: Engine,
  { printed, from }: { printed: string; from(view: string): string },
): Promise<void> {
  for (const statement of statementsIn(printed)) await engine.ask(statement)
  const expected = lakeOfTests().publications.at(-1)?.views ?? {}
  expect(printed.match(/^CREATE OR REPLACE [A-Z]*\s?VIEW/gm)).toHaveLength(Object.keys(expected).length)
  for (const [view, rows] of Object.entries(expected))
    expectRows(view, await engine.ask(`SELECT * FROM ${from(view)}`), rows)
}

function expectRows(
  name: string,
  found: TableRows,
  { columns, rows }: ExpectedRows = { columns: [] },
  shown: Reading['shown'] = column => column,
): void {
  expect(found.columns, name).toEqual(columns.map(shown))
  if (rows) expect(sortedRows(found.rows), name).toEqual(rows)
}
