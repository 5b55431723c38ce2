import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Clock, MINUTE_MS, systemClock } from '../../src/base/clock.ts'
import { loadSettings } from '../../src/config/load-settings.ts'
import type { Settings } from '../../src/config/loaded-settings.ts'
import type { Finding } from '../../src/doctor/finding.ts'
import { publishingFindings, spaceFinding, writingFinding } from '../../src/doctor/publishing.ts'
import { META, readMeta } from '../../src/store/sync/meta.ts'
import { publishedTargets } from '../../src/store/sync/publications.ts'
import { emptyFolder, parley } from '../cli/parley.ts'
import { publishInto, publishTo } from '../publish/publishing.ts'
import { ACCESS, BUCKET, type FakeS3, fakeS3 } from '../publish/s3/fake-s3.ts'
import { bucketOf } from '../publish/s3/publishing.ts'
import { type TemporaryStore, temporaryStore } from '../store/temporary-store.ts'
import { placeFor, serveWorkspace } from './api-server.ts'

type Publish = Partial<Settings['publish']>

function findings(
  publish: Publish,
  { store, clock = systemClock() }: { store?: TemporaryStore; clock?: Clock } = {},
): Promise<readonly Finding[]> {
  const { settings } = loadSettings({ flags: {}, env: {}, cwd: '/', requireApi: false })
  return publishingFindings({
    settings: { ...settings, publish: { ...settings.publish, ...publish } },
    identity: store && readMeta(store.db, META.identity),
    published: store ? publishedTargets(store.db) : new Set(),
    clock,
    signal: new AbortController().signal,
  })
}

const marks = (all: readonly Finding[]) => all.map(({ mark, check }) => `${mark} ${check}`)
const later = (ms: number): Clock => ({ ...systemClock(), now: () => Date.now() + ms })

test('without a target nothing is checked', async () => {
  expect(await findings({ target: undefined })).toEqual([])
})

describe('a folder', () => {
  test('that does not exist yet can be created, and is not created by the check', async () => {
    const parent = emptyFolder()
    const all = await findings({ target: join(parent, 'data', 'lake') })
    expect(marks(all)).toEqual([
      'ok publish target',
      'ok publish access',
      expect.stringMatching(/disk space$/),
    ])
    expect(all[1]?.found).toBe(`${parent} is writable, and the rest of the path is created`)
  })

  test('that is empty again after a publication is a warning', async () => {
    const store = temporaryStore()
    const folder = emptyFolder()
    expect(await findings({ target: folder }, { store })).toMatchObject([
      { mark: 'ok', found: `${folder} has nothing yet` },
      {},
      {},
    ])
    const published = await parley(['publish', folder, '--tables', 'teams', '--database', store.path])
    expect(published.status).toBe(0)
    rmSync(folder, { recursive: true })
    mkdirSync(folder)
    expect((await findings({ target: folder }, { store }))[0]).toMatchObject({
      mark: 'warning',
      found: `${folder} is empty, and this warehouse has published to it`,
      hint: expect.stringContaining('Bring the files back'),
    })
  })

  test('with publications of this warehouse is good until the last one is late', async () => {
    const store = temporaryStore()
    const folder = emptyFolder()
    await publishTo(store.path, { folder, url: `file://${folder}` }, { tables: ['teams'] })
    const target = { target: folder }
    const [belongs, access, , last] = await findings(target, { store })
    expect(belongs).toMatchObject({ mark: 'ok', found: `${folder} has publications of this warehouse` })
    expect(access).toMatchObject({ mark: 'ok', found: `${folder} is writable` })
    expect(last).toMatchObject({
      mark: 'ok',
      found: expect.stringMatching(/^number 1 of .+; publish\.every is 5 min$/),
    })

    const late = (await findings(target, { store, clock: later(21 * MINUTE_MS) })).at(-1)
    expect(late).toMatchObject({ mark: 'warning', hint: expect.stringContaining('parley status') })
    const never = await findings({ ...target, every: 'never' }, { store, clock: later(21 * MINUTE_MS) })
    expect(never.at(-1)).toMatchObject({ mark: 'ok', found: expect.stringContaining('does not publish') })

    const [other] = await findings(target, { store: temporaryStore() })
    expect(other).toMatchObject({ mark: 'warning', found: `${folder} has publications of another warehouse` })
    const [moved] = await findings({ ...target, location: 's3://elsewhere/lake' }, { store })
    expect(moved).toMatchObject({
      mark: 'warning',
      hint: expect.stringContaining(`publish.location to "file://${folder}"`),
    })
  })

  test('with files of other programs, or a file in its place, is refused by name', async () => {
    const folder = emptyFolder()
    writeFileSync(join(folder, 'notes.txt'), 'mine')
    expect((await findings({ target: folder }))[0]).toMatchObject({
      mark: 'warning',
      found: `${folder} has files that parley publish did not write`,
    })
    const file = await findings({ target: join(folder, 'notes.txt') })
    expect(file).toContainEqual(
      expect.objectContaining({ mark: 'warning', found: `${join(folder, 'notes.txt')} is not a folder` }),
    )
  })

  test('whose path ends too early for readers is refused until a location is set', async () => {
    const target = join(emptyFolder(), 'c#', 'lake')
    expect((await findings({ target }))[0]).toMatchObject({
      mark: 'warning',
      found: `Readers cannot find files below ${target}: they take # for the end of a path`,
      hint: expect.stringContaining('publish.location'),
    })
    expect((await findings({ target, location: 's3://bucket/lake' }))[0]).toMatchObject({ mark: 'ok' })
  })

  test('with a publication that was interrupted before it was complete says so', async () => {
    const folder = emptyFolder()
    writeFileSync(join(folder, '.parley-publish-lock'), '')
    mkdirSync(join(folder, 'teams'))
    expect((await findings({ target: folder }))[0]).toMatchObject({
      mark: 'note',
      found: `${folder} has no complete publication yet`,
    })
  })

  test('that another user owns, or that is nearly full, is a warning', () => {
    const place = { path: '/lake', existing: '/lake', isFolder: true, isOpen: false, freeBytes: 2 ** 20 }
    expect(writingFinding({ ...place, refused: '/lake/publications/metadata' })).toMatchObject({
      mark: 'warning',
      found: '/lake/publications/metadata is not writable for this user',
    })
    expect(spaceFinding(place).mark).toBe('warning')
    expect(spaceFinding({ ...place, freeBytes: 2 ** 40 }).mark).toBe('ok')
  })

  test.each([
    [0o755, 'ok'],
    [0o775, 'ok'],
    [0o1777, 'ok'],
    [0o757, 'warning'],
    [0o777, 'warning'],
  ] as const)('with mode %o is %s: others must not replace published files', async (mode, mark) => {
    const folder = emptyFolder()
    chmodSync(folder, mode)
    const access = (await findings({ target: folder })).find(({ check }) => check === 'publish access')
    expect(access?.mark).toBe(mark)
  })
})

describe('a bucket', () => {
  const access = ({ url }: FakeS3): Publish => ({
    target: `s3://${BUCKET}/lake`,
    s3Endpoint: url,
    s3Region: ACCESS.region,
    s3AccessKeyId: ACCESS.id,
    s3SecretAccessKey: ACCESS.secret,
  })

  test('with half of the credentials names the setting that is missing', async () => {
    const [finding] = await findings({ target: `s3://${BUCKET}/lake`, s3AccessKeyId: 'AKID' })
    expect(finding).toMatchObject({
      mark: 'warning',
      found: 'publish.s3_secret_access_key is not set, but the rest of the credentials is',
      hint: expect.stringContaining('publish.s3_secret_access_key_file'),
    })
  })

  test('is only read, and that writing was not checked is said', async () => {
    const server = await fakeS3()
    const store = temporaryStore()
    await publishInto(await bucketOf(server), store.path, { tables: ['teams'] })
    server.fault = ({ method }) => (method === 'GET' ? undefined : { status: 403, code: 'AccessDenied' })
    const all = await findings(access(server), { store })
    expect(marks(all)).toEqual(['ok publish target', 'note publish access', 'ok last publication'])
    expect(all[1]?.found).toContain('whether it can be written is not checked')
  })

  test('that refuses or does not exist is named with what to do', async () => {
    const server = await fakeS3()
    const refused = await findings({ ...access(server), s3SecretAccessKey: 'wrong-S3CRET' })
    expect(refused).toEqual([
      expect.objectContaining({ mark: 'warning', found: expect.stringContaining('refuses the signature') }),
    ])
    expect(JSON.stringify(refused)).not.toContain('S3CRET')
    const missing = await findings({ ...access(server), target: 's3://another-bucket/lake' })
    expect(missing[0]).toMatchObject({
      mark: 'warning',
      found: expect.stringContaining('There is no bucket another-bucket'),
    })
  })

  test('that does not answer is given up after a while', async () => {
    const server = await fakeS3()
    const asked = new Promise<void>(resolve => {
      server.fault = () => {
        resolve()
        return 'hang'
      }
    })
    const { sleep, ...clock } = systemClock()
    const all = await findings(access(server), {
      clock: { ...clock, sleep: (ms, signal) => (ms === 15_000 ? asked : sleep(ms, signal)) },
    })
    expect(all).toEqual([
      expect.objectContaining({ mark: 'warning', found: 'The target does not answer within 15 s' }),
    ])
  })
})

test('the command reports the target of the settings, and its status does not depend on it', async () => {
  const { cwd, env, file } = placeFor(await serveWorkspace({ now: 'real' }, { onTestFinished }))
  const args = ['doctor', '--json', '--database', file, '--publish-target', `s3://${BUCKET}/lake`]
  const { status, stdout } = await parley(args, { cwd, env: { ...env, AWS_EC2_METADATA_DISABLED: 'true' } })
  expect(status).toBe(0)
  expect(JSON.parse(stdout).findings).toContainEqual(
    expect.objectContaining({
      mark: 'warning',
      check: 'publish target',
      found: expect.stringContaining('publish.s3_access_key_id and'),
    }),
  )
})
