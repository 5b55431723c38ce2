import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import type { S3Options } from '../../src/publish/storage/s3.ts'
import type { Storage } from '../../src/publish/storage/storage.ts'
import { type Ended, parley } from '../cli/parley.ts'
import { publishInto } from '../publish/publishing.ts'
import { bucketOf } from '../publish/s3/publishing.ts'
import { type TemporaryStore, temporaryStore } from '../store/temporary-store.ts'
import { until } from '../support/until.ts'
import {
  type Ceph,
  commandEnvironment,
  ISSUES_CREDENTIALS,
  OWNER,
  READER,
  REGION,
  startCeph,
  temporaryCredentials,
} from './ceph.ts'
import { literal, startClickHouse } from './clickhouse.ts'
import { startProxy } from './cutting-proxy.ts'

const BUCKET = 'lake-of-acme'
const RESOLVER = new URL('resolve-localhost.mjs', import.meta.url).href
const NOW = '2026-06-30T12:00:00.000Z'

describe('The S3 API of Ceph', () => {
  let ceph: Ceph

  beforeAll(async () => {
    ceph = await startCeph()
    await ceph.send(`/${BUCKET}`, { method: 'PUT' })
  })

  afterAll(() => ceph?.close())

  const open = (options: Partial<S3Options> = {}): Promise<Storage> =>
    bucketOf(
      { url: ceph.url },
      { bucket: BUCKET, region: REGION, credentials: { ...OWNER, sessionToken: undefined }, ...options },
    )

  const command = (args: readonly string[], env: Record<string, string> = {}): Promise<Ended> =>
    parley(args, { env: { ...commandEnvironment(ceph), ...env } })

  /** What `parley publish verify` finds. */
  const faultsOf = async (prefix: string): Promise<unknown[]> => {
    const { stdout, stderr } = await command(['publish', 'verify', `s3://${BUCKET}/${prefix}`, '--json'])
    if (stdout === '') throw new Error(stderr)
    return JSON.parse(stdout).faults
  }

  test('of many writes of one key at the same time, exactly one is stored', async () => {
    const storages = [await open(), await open(), await open()]
    for (let key = 0; key < 30; key += 1) {
      const bytes = (writer: number) => Buffer.from(`${key} by ${writer}`)
      const stored = await Promise.all(
        storages.map((storage, writer) => storage.writeIfAbsent(`t/${key}`, bytes(writer))),
      )
      expect(stored.filter(Boolean)).toHaveLength(1)
      expect(await storages[0]?.read(`t/${key}`)).toEqual(bytes(stored.indexOf(true)))
    }
  })

  test('a listing of more than a thousand keys is complete, and the keys can be removed', async () => {
    const storage = await open({ prefix: 'many' })
    const paths = Array.from({ length: 1100 }, (_, number) => `t/${String(number).padStart(4, '0')}`)
    await Promise.all(paths.map(path => storage.write(path, Buffer.from(path))))
    await storage.write('table/other', Buffer.from(''))
    expect(await storage.list('t')).toEqual(paths)
    await Promise.all(paths.map(path => storage.remove(path)))
    expect(await storage.list('t')).toEqual([])
    expect(await storage.list('table')).toEqual(['table/other'])
  })

  test.each(['a b/c+d', 'ä/日本=&', "q'!()*~", 'per%20cent'])(
    'keys with odd characters below the prefix %j are written, listed, read and removed',
    async prefix => {
      const storage = await open({ prefix })
      const paths = ['t/a b', 't/a+b', 't/%41', 't/ü&<>"', "t/!'()*~", 't/=:@', 't/日本']
      for (const path of paths) await storage.write(path, Buffer.from(path))
      const listed = await storage.list('t')
      expect(listed.toSorted()).toEqual(paths.toSorted())
      for (const path of listed) expect(String(await storage.read(path))).toBe(path)
      for (const path of listed) await storage.remove(path)
      expect(await storage.list('t')).toEqual([])
    },
  )

  test('the bucket can be named in the host as well as in the path', async () => {
    const store = filledStore('M')
    const args = ['publish', `s3://${BUCKET}/by-host`, '--database', store.path, '--json']
    const byHost = ['--s3-path-style', 'false']
    const published = await command([...args, ...byHost], { NODE_OPTIONS: `--import=${RESOLVER}` })
    expect(published.status, published.stderr).toBe(EXIT_STATUS.done)
    expect(await faultsOf('by-host')).toEqual([])
  })

  test.each<[what: string, code: string, options: () => Partial<S3Options>, message: RegExp]>([
    [
      'a wrong secret',
      'publish-signature',
      () => ({ credentials: { ...OWNER, secretAccessKey: 'wrong', sessionToken: undefined } }),
      /\(HTTP 403, SignatureDoesNotMatch\)$/,
    ],
    [
      'an unknown access key',
      'publish-unknown-key',
      () => ({ credentials: { ...OWNER, accessKeyId: 'UNKNOWN', sessionToken: undefined } }),
      /\(HTTP 403, InvalidAccessKeyId\)$/,
    ],
    [
      'a bucket that does not exist',
      'publish-no-bucket',
      () => ({ bucket: 'not-there' }),
      /^There is no bucket not-there at .* \(HTTP 404, NoSuchBucket\)$/,
    ],
    [
      'an access key that may only read',
      'publish-denied',
      () => ({ credentials: { ...READER, sessionToken: undefined } }),
      /^Access to s3:\/\/lake-of-acme\/lake is denied \(HTTP 403, AccessDenied\)$/,
    ],
  ])('%s is an error of status 73 that says so', async (_, code, options, message) => {
    await expect(open(options())).rejects.toMatchObject({
      exitStatus: EXIT_STATUS.databaseUnavailable,
      code,
      message: expect.stringMatching(message),
    })
  })

  test('temporary credentials publish with their session token until they expire', async () => {
    await ceph.kill()
    await ceph.start(ISSUES_CREDENTIALS)
    const credentials = await temporaryCredentials(ceph, 900)
    const storage = await open({ prefix: 'temporary', credentials })
    await storage.write('t/one', Buffer.from('1'))
    expect(await storage.list('t')).toEqual(['t/one'])
    const short = await temporaryCredentials(ceph, 1)
    const seen = await until(
      () =>
        open({ prefix: 'temporary', credentials: short }).then(
          () => undefined,
          reason => reason,
        ),
      error => error !== undefined,
    )
    await ceph.kill()
    await ceph.start()
    expect(seen).toMatchObject({ code: 'publish-denied', hint: expect.stringContaining('session token') })
  })

  test('of publications at the same time each is complete or ends with 75', async () => {
    const store = filledStore('M')
    const args = ['publish', `s3://${BUCKET}/together`, '--database', store.path, '--json']
    const ends = await Promise.all([command(args), command(args), command(args)])
    const done = ends.filter(({ status }) => status === EXIT_STATUS.done)
    const others = ends.filter(end => !done.includes(end))
    expect(done.length).toBeGreaterThanOrEqual(1)
    expect(others.map(({ status }) => status)).toEqual(others.map(() => EXIT_STATUS.unfinished))
    expect(await faultsOf('together')).toEqual([])
  })

  test('a gateway that is killed at any request leaves a complete publication to readers, and the next one continues', async () => {
    const store = filledStore('text 0')
    const proxy = await startProxy(`127.0.0.1:${ceph.port}`)
    const clickhouse = startClickHouse()
    onTestFinished(async () => {
      await proxy.close()
      await clickhouse.close()
    })
    const table = (name: string) =>
      `icebergS3(${[`${ceph.url}/${BUCKET}/killed/${name}`, OWNER.accessKeyId, OWNER.secretAccessKey].map(literal).join(', ')})`
    /** The texts of members and messages in the newest complete publication. */
    const shown = async (): Promise<unknown[][]> => {
      const newest = await clickhouse.ask(
        `SELECT snapshots FROM ${table('publications')} ORDER BY publication DESC LIMIT 1`,
      )
      const snapshots = JSON.parse(String(newest.rows[0]?.[0]))
      const of = (name: string) => `SETTINGS iceberg_snapshot_id = ${snapshots[name]}`
      const messages = await clickhouse.ask(
        `SELECT subject, count() FROM ${table('messages')} GROUP BY 1 ${of('messages')}`,
      )
      const members = await clickhouse.ask(
        `SELECT name, count() FROM ${table('members')} GROUP BY 1 ${of('members')}`,
      )
      return [...messages.rows, ...members.rows]
    }
    const publish = async () =>
      publishInto(await open({ prefix: 'killed', endpoint: `http://${proxy.host}` }), store.path, {
        tables: ['messages', 'members'],
      })
    const rowsOf = (text: string) => [
      [text, '10'],
      [text, '1'],
    ]
    await publish()
    write(store, 'text 1')
    proxy.arm(Number.POSITIVE_INFINITY)
    await publish()
    const requests = proxy.count()
    expect(await shown()).toEqual(rowsOf('text 1'))
    const seen: unknown[][][] = []
    for (const [place, share] of [0, 0.2, 0.4, 0.6, 0.9].entries()) {
      write(store, `text ${place + 2}`)
      proxy.arm(Math.floor(requests * share), { reaches: place % 2 === 0, cut: ceph.kill })
      await expect(publish()).rejects.toMatchObject({ code: 'publish-unreachable' })
      await ceph.start()
      seen.push(await shown())
      proxy.arm(Number.POSITIVE_INFINITY)
      await publish()
      expect(await shown()).toEqual(rowsOf(`text ${place + 2}`))
    }
    // The last kill is near the end, where the publication may be complete.
    const last = seen.pop()
    expect(seen).toEqual([1, 2, 3, 4].map(number => rowsOf(`text ${number}`)))
    expect([rowsOf('text 5'), rowsOf('text 6')]).toContainEqual(last)
    expect(await faultsOf('killed')).toEqual([])
  })

  test('a gateway that is down is an error of status 73 that names its address, and the next publication is complete', async () => {
    const store = filledStore('M')
    await ceph.kill()
    const down = await open().catch((reason: unknown) => reason)
    await ceph.start()
    expect(down).toMatchObject({
      exitStatus: EXIT_STATUS.databaseUnavailable,
      message: `${ceph.url} cannot be reached: ECONNREFUSED`,
    })
    expect(await publishInto(await open({ prefix: 'after' }), store.path)).toMatchObject({ publication: 1 })
  })
})

/** A warehouse with ten messages in ten months and a member, all with the same text. */
function filledStore(text: string): TemporaryStore {
  const store = temporaryStore()
  write(store, text)
  return store
}

function write(store: TemporaryStore, text: string): void {
  const messages = Array.from({ length: 10 }, (_, index) => ({
    id: `m${index}`,
    subject: text,
    received_at: `2026-${String(index + 1).padStart(2, '0')}-01T10:00:00.000Z`,
  }))
  store.put('message_copies', messages, { now: NOW })
  store.put('members', [{ id: 'm', name: text, email: 'm@x.example' }], { now: NOW })
}
