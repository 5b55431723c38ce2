import { tmpdir } from 'node:os'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { createCatalogue } from '../../src/publish/catalogue/catalogue.ts'
import { openS3Reader } from '../../src/publish/storage/s3/s3.ts'
import { parley } from '../cli/parley.ts'
import { start } from '../server/status-server.ts'
import { CLOCK_TABLE } from '../support/published-cells.ts'
import { type Ceph, commandEnvironment, debianCeph, READER, REGION, startCeph } from './ceph.ts'
import { type ClickHouse, identifier, literal, startClickHouse } from './clickhouse.ts'
import { type ExpectedRows, type Published, sortedRows, startPublished } from './published.ts'

const BUCKET = 'lake-of-acme'
const TOKEN = 'a-token-of-the-catalogue'

const program = debianCeph()

describe.skipIf(typeof program === 'string')(
  'ClickHouse on a bucket of Ceph, with a key that may only read',
  () => {
    let ceph: Ceph
    let published: Published
    let clickhouse: ClickHouse
    /** The warehouse as of each publication. */
    const warehouses = new Map<number, ReadonlyMap<string, ExpectedRows>>()

    const publish = async (): Promise<number> => {
      const number = await published.publish()
      warehouses.set(number, published.warehouse())
      return number
    }

    beforeAll(async () => {
      if (typeof program === 'string') return
      ceph = await startCeph(program)
      await ceph.send(`/${BUCKET}`, { method: 'PUT' })
      published = await startPublished({ target: `s3://${BUCKET}/lake`, env: commandEnvironment(ceph) })
      clickhouse = startClickHouse()
      await publish()
    })

    afterAll(async () => {
      await clickhouse?.close()
      await published?.trial.close()
      await ceph?.close()
    })

    const inBucket = (table: string): string => {
      const { accessKeyId, secretAccessKey } = READER
      const args = [`${ceph.url}/${BUCKET}/lake/${table}`, accessKeyId, secretAccessKey]
      return `icebergS3(${args.map(literal).join(', ')})`
    }

    /** Compares every value of every table with SQLite's at that publication. Returns the number of rows. */
    const compare = async (publication: number): Promise<number> => {
      const [row] = await clickhouse.query(
        `SELECT snapshots FROM ${inBucket('publications')} WHERE publication = ${publication}`,
      )
      const snapshots = JSON.parse(String(row?.[0]))
      let count = 0
      for (const [table, { columns, rows }] of warehouses.get(publication) ?? []) {
        const settings = `SETTINGS iceberg_snapshot_id = ${snapshots[table]}`
        const found = await clickhouse.rows(inBucket(table), settings)
        expect(found.columns, table).toEqual(columns)
        if (table !== CLOCK_TABLE) expect(sortedRows(found.rows), table).toEqual(rows)
        count += rows.length
      }
      return count
    }

    test('every value of every table is read, of an earlier publication and of the last one', async () => {
      const { trial } = published
      await trial.simulator.changeAtOnce([
        { kind: 'delete', resource: 'messages', count: 2 },
        { kind: 'publish', resource: 'messages', count: 3 },
        { kind: 'edit', resource: 'crm_records', count: 2 },
        { kind: 'addField', object: 'deal', field: 'added later', type: 'decimal' },
      ])
      expect((await trial.backfill()).status).toBe(0)
      expect(await publish()).toBe(2)
      expect(warehouses.get(2)?.get('messages')?.rows).not.toEqual(warehouses.get(1)?.get('messages')?.rows)
      await compare(2)
      await compare(1)
      const env = commandEnvironment(ceph)
      const args = ['publish', 'verify', `s3://${BUCKET}/lake`, '--database', trial.database, '--json']
      const verified = await parley(args, { env })
      expect(JSON.parse(verified.stdout)).toMatchObject({ publication: 2, faults: [] })
    })

    test('every row is found through the catalogue, also by the views of parley schema', async () => {
      const reader = openS3Reader({
        bucket: BUCKET,
        prefix: 'lake',
        endpoint: ceph.url,
        region: REGION,
        pathStyle: undefined,
        location: undefined,
        temporary: tmpdir(),
        credentials: { ...READER, sessionToken: undefined },
        clock: systemClock(),
        signal: new AbortController().signal,
        random: Math.random,
      })
      onTestFinished(() => reader.close())
      const catalogue = createCatalogue(reader, systemClock())
      const { server } = await start({ catalogue: { catalogue, token: TOKEN } })
      const args = [`http://${server.address}/iceberg`, READER.accessKeyId, READER.secretAccessKey]
      const settings = {
        catalog_type: 'rest',
        warehouse: 'parley',
        auth_header: `Authorization: Bearer ${TOKEN}`,
        storage_endpoint: `${ceph.url}/${BUCKET}`,
      }
      const given = Object.entries(settings).map(([name, value]) => `${name} = ${literal(value)}`)
      await clickhouse.query('SET allow_database_iceberg = 1')
      await clickhouse.query(
        `CREATE DATABASE lake ENGINE = DataLakeCatalog(${args.map(literal).join(', ')}) SETTINGS ${given.join(', ')}`,
      )
      for (const [table, { rows }] of warehouses.get(Math.max(...warehouses.keys())) ?? []) {
        const source = `lake.${identifier(`parley.${table}`)}`
        expect(await clickhouse.query(`SELECT count() FROM ${source}`), table).toEqual([[`${rows.length}`]])
      }
      const { stdout } = await parley(['schema', '--clickhouse', '--database', published.trial.database])
      await clickhouse.query('CREATE DATABASE parley')
      await clickhouse.query('USE parley')
      for (const statement of stdout.split(/;\n+/).filter(text => text.trim() !== ''))
        await clickhouse.query(statement)
      const [live] = await clickhouse.query('SELECT count() FROM live_messages')
      const [all] = await clickhouse.query(`SELECT countIf(_deleted_at IS NULL) FROM ${inBucket('messages')}`)
      expect(Number(live?.[0])).toBeGreaterThan(100)
      expect(live).toEqual(all)
    })
  },
)
