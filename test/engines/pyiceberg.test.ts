import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Engine, installed, startEngine } from './engine-process.ts'
import { expectEarlier, expectNewest, lakeOfTests } from './lake.ts'

const lake = lakeOfTests()

describe.each(['folder', 'bucket'] as const)('pyiceberg with the catalogue of a %s', kind => {
  let pyiceberg: Engine

  beforeAll(() => {
    const { bucket, catalogues, token } = lake
    const properties = {
      type: 'rest',
      uri: catalogues[kind],
      token,
      ...(kind === 'bucket' && {
        's3.endpoint': bucket.endpoint,
        's3.region': bucket.region,
        's3.access-key-id': bucket.keyId,
        's3.secret-access-key': bucket.secret,
      }),
    }
    pyiceberg = startEngine({
      name: 'pyiceberg',
      command: installed('pyiceberg', 'python/bin/python'),
      args: [new URL('pyiceberg-reader.py', import.meta.url).pathname, JSON.stringify(properties)],
    })
  })

  afterAll(() => pyiceberg?.close())

  const read = (table: string, snapshot?: number) =>
    pyiceberg.ask({ table, ...(snapshot !== undefined && { snapshot }) })

  test('lists every table', async () => {
    const { rows } = await pyiceberg.ask({ tables: true })
    const tables = Object.keys(lake.publications.at(-1)?.tables ?? {})
    expect(rows.flat()).toEqual([...tables, 'publications'].toSorted())
  })

  test('reads every value of every table as SQLite has it', () => expectNewest({ read }))

  test('reads every value of the earlier publications', () => expectEarlier({ read }))

  test('reads a table by the address of its metadata, without the catalogue', async () => {
    const place = kind === 'folder' ? `file://${lake.folder}` : `s3://${lake.bucket.name}/lake`
    const hint = readFileSync(join(lake.folder, 'messages/metadata/version-hint.text'), 'utf8')
    const found = await pyiceberg.ask({ metadata: `${place}/messages/metadata/v${hint}.metadata.json` })
    expect(found).toEqual(await read('messages'))
  })

  test('reads the rows that a filter of the page selects', async () => {
    const all = await read('messages')
    const place = all.columns.indexOf('_deleted_at')
    const found = await pyiceberg.ask({ table: 'messages', filter: '_deleted_at is null' })
    expect(found.rows).toHaveLength(all.rows.filter(row => row[place] === null).length)
    expect(found.rows.length).toBeLessThan(all.rows.length)
  })
})
