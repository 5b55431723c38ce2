import { join } from 'node:path'
import { expect, test } from 'vitest'
import { DAY_MS } from '../../../src/base/clock.ts'
import { EXIT_STATUS } from '../../../src/base/errors.ts'
import type { PublishSummary } from '../../../src/publish/publish.ts'
import { pathIn, readSnapshotFiles, readTarget } from '../../../src/publish/published-state.ts'
import { openFolder } from '../../../src/publish/storage/folder.ts'
import type { Storage } from '../../../src/publish/storage/storage.ts'
import { META } from '../../../src/store/sync/meta.ts'
import { newFolder, type TemporaryStore, temporaryStore } from '../../store/temporary-store.ts'
import { until } from '../../support/until.ts'
import { publishInto } from '../publishing.ts'
import { BUCKET, FAILING, type FakeCall, type FakeFault, type FakeS3, fakeS3, SLOW_DOWN } from './fake-s3.ts'
import { bucketOf, datedClock, twinOf } from './publishing.ts'

const NOW = '2026-03-04T12:00:00.000Z'

/** A partitioned table, small ones, one of parley's own state: the others would be written the same way. */
const TABLES = ['meetings', 'members', 'teams', 'team_members', 'sync_runs']

const publishTo: typeof publishInto = (storage, database, options = {}) =>
  publishInto(storage, database, { tables: TABLES, ...options })

const putMember = (store: TemporaryStore, id: string, name: string) =>
  store.put('members', [{ id, name }], { now: NOW })

const putTeam = (store: TemporaryStore, id: string, name: string) =>
  store.put('teams', [{ id, name }], { now: NOW })

function noteErasure(store: TemporaryStore, at: string): void {
  store.atomically(() => store.state.setMeta(META.purgedAt, at))
}

/** Without the versions of `publications`: in a bucket it has one more for each publication that began. */
const withoutBeginnings = ({ tables, ...summary }: PublishSummary) => ({
  ...summary,
  files_removed: undefined,
  tables: tables.map(table => (table.folder === 'publications' ? { ...table, version: undefined } : table)),
})

/** All objects but the metadata of `publications`, by path, with each random name replaced by its place among those with the same beginning. */
async function contentsOf(storage: Storage): Promise<Map<string, string>> {
  const contents = new Map<string, string>()
  const paths = (await storage.list('')).filter(
    path => !/^\.parley-publish|^publications\/metadata\/(v|version)/.test(path),
  )
  const isText = (path: string) => path.endsWith('.json') || path.endsWith('.text')
  for (const path of paths.toSorted()) {
    const bytes = await storage.read(path)
    const content = path.endsWith('.avro') ? '' : bytes?.toString(isText(path) ? 'utf8' : 'base64')
    const name = path.replace(/[\da-f]{8}-[\da-f-]{27}/, '*')
    contents.set(name, `${contents.get(name) ?? ''}${content?.replace(/[\da-f]{8}-[\da-f-]{27}/g, '*')}`)
  }
  return contents
}

/** Every file that a snapshot or the log of the newest metadata of each table names. */
async function namedFiles(storage: Storage): Promise<string[]> {
  const named: string[] = []
  for (const state of (await readTarget(storage)).tables.values()) {
    for (const snapshot of state.metadata.snapshots) {
      const { manifests, files } = await readSnapshotFiles(storage, snapshot['manifest-list'])
      named.push(snapshot['manifest-list'], ...manifests, ...files.map(({ path }) => path))
    }
    named.push(...state.metadata['metadata-log'].map(entry => entry['metadata-file']))
  }
  return named.map(address => pathIn(storage, address))
}

async function expectComplete(fake: FakeS3): Promise<void> {
  const storage = await bucketOf(fake)
  const present = new Set(await storage.list(''))
  expect((await namedFiles(storage)).filter(path => !present.has(path))).toEqual([])
}

const filesOf = (fake: FakeS3, folder: string): string[] =>
  fake.keys().filter(key => key.startsWith(`lake/${folder}/data/`))

test('publications in a bucket equal those in a folder, file by file', async () => {
  const clock = datedClock()
  const fake = await fakeS3({ now: clock.now })
  const store = temporaryStore()
  putMember(store, 'm', 'M')
  putTeam(store, 't', 'T')
  const folder = () => openFolder({ path, location: `s3://${BUCKET}/lake`, mode: 0o600, clock })
  const path = join(newFolder(), 'lake')
  const counts: number[] = []
  for (const name of ['N', 'O', 'P']) {
    const inBucket = await publishInto(await bucketOf(fake, { clock }), store.path, { clock, keep: 2 })
    const inFolder = await publishInto(folder(), store.path, { clock, keep: 2 })
    expect(withoutBeginnings(inBucket)).toEqual(withoutBeginnings(inFolder))
    const [bucket, local] = [await bucketOf(fake, { clock }), folder()]
    const contents = await contentsOf(bucket)
    expect(contents).toEqual(await contentsOf(local))
    bucket.close()
    local.close()
    counts.push(contents.size)
    putMember(store, 'm', name)
    clock.advance(2 * DAY_MS)
  }
  expect(Math.min(...counts)).toBeGreaterThan(100)
  await expectComplete(fake)
})

test.each<[what: string, faults: FakeFault[]]>([
  ['lost answers', ['lost']],
  ['errors', [FAILING, SLOW_DOWN]],
  ['resets', ['reset']],
])('a publication through %s of every request is complete and has each object once', async (_, faults) => {
  const clock = datedClock()
  const [flawless, flawed] = [await fakeS3({ now: clock.now }), await fakeS3({ now: clock.now })]
  const store = temporaryStore()
  putMember(store, 'm', 'M')
  await publishTo(await bucketOf(flawless, { clock }), store.path, { clock })
  const left = new Map<string, FakeFault[]>()
  flawed.fault = ({ method, key, query }) => {
    const name = `${method} ${key}?${query}`
    if (!left.has(name)) left.set(name, [...faults])
    return left.get(name)?.shift()
  }
  const { publication } = await publishTo(await bucketOf(flawed, { clock }), store.path, { clock })
  flawed.fault = () => undefined
  expect(publication).toBe(1)
  expect(await contentsOf(await bucketOf(flawed))).toEqual(await contentsOf(await bucketOf(flawless)))
  expect(flawed.objects.size).toBe(flawless.objects.size)
  await expectComplete(flawed)
})

test.each([
  ['a new target', false],
  ['a target with a publication', true],
])('of two publications to %s at the same time one wins, and the other ends with 75', async (_, isLater) => {
  const fake = await fakeS3()
  const store = temporaryStore()
  putMember(store, 'm', 'M')
  if (isLater) await publishTo(await bucketOf(fake), store.path)
  const twin = twinOf(store)
  putMember(store, 'm', 'one')
  putMember(twin, 'm', 'other')
  const stores = [store, twin]
  const storages = [await bucketOf(fake), await bucketOf(fake)]
  const ends = await Promise.allSettled(
    storages.map((storage, place) => publishTo(storage, stores[place]?.path ?? '')),
  )
  const statuses = ends.map(end => (end.status === 'rejected' ? end.reason.exitStatus : EXIT_STATUS.done))
  expect(statuses.toSorted()).toEqual([EXIT_STATUS.done, EXIT_STATUS.unfinished])
  await expectComplete(fake)
  const winner = statuses.indexOf(EXIT_STATUS.done)
  expect(await changedBy(fake, stores[winner])).toEqual([])
  expect(await changedBy(fake, stores[1 - winner])).toContain('members')
  await expectComplete(fake)
})

/** The tables of which the next publication of the warehouse writes files. */
async function changedBy(fake: FakeS3, store: TemporaryStore | undefined): Promise<string[]> {
  const { tables } = await publishTo(await bucketOf(fake), store?.path ?? '')
  return tables.flatMap(({ folder, filesWritten }) =>
    filesWritten > 0 && folder !== 'publications' ? [folder] : [],
  )
}

/** Holds the first request that fits, until it is released. */
function hold(fake: FakeS3, fits: (call: FakeCall) => boolean) {
  const before = fake.fault
  let isHeld = false
  let release: () => void = () => undefined
  const released = new Promise<void>(resolve => {
    release = resolve
  })
  fake.fault = async call => {
    if (isHeld || !fits(call)) return before(call)
    isHeld = true
    await released
    return before(call)
  }
  return {
    release,
    async reached() {
      const hasCome = await until(
        () => isHeld,
        held => held,
      )
      expect(hasCome, 'the request to hold').toBe(true)
    },
  }
}

/** A removal of a sweep of the members. */
const isSweep = ({ method, key }: FakeCall) => method === 'DELETE' && key.startsWith('lake/members/')

test('a sweep leaves the new files of another publication in progress', async () => {
  const fake = await fakeS3()
  const store = temporaryStore()
  putMember(store, 'm', 'M')
  await publishTo(await bucketOf(fake), store.path)
  putMember(store, 'm', 'N')
  const sweep = hold(fake, isSweep)
  const first = publishTo(await bucketOf(fake), store.path, { keep: 1 })
  await sweep.reached()
  const commit = hold(fake, ({ key }) => key === 'lake/members/metadata/v4.metadata.json')
  const twin = twinOf(store)
  putMember(twin, 'm', 'other')
  const second = publishTo(await bucketOf(fake), twin.path)
  await commit.reached()
  expect(filesOf(fake, 'members')).toHaveLength(3)
  sweep.release()
  expect(await first).toMatchObject({ publication: 2 })
  expect(filesOf(fake, 'members')).toHaveLength(2)
  commit.release()
  expect(await second).toMatchObject({ publication: 3 })
  await expectComplete(fake)
})

test('a sweep leaves a table that another process has published since, however old its files are', async () => {
  const clock = datedClock()
  const fake = await fakeS3({ now: clock.now })
  const store = temporaryStore()
  putMember(store, 'm', 'M')
  await publishTo(await bucketOf(fake, { clock }), store.path, { clock })
  putMember(store, 'm', 'N')
  const sweep = hold(fake, isSweep)
  const first = publishTo(await bucketOf(fake, { clock }), store.path, { clock, keep: 1 })
  await sweep.reached()
  const twin = twinOf(store)
  putMember(twin, 'm', 'other')
  await publishTo(await bucketOf(fake, { clock }), twin.path, { clock })
  clock.advance(2 * DAY_MS)
  sweep.release()
  await first
  expect(fake.keys()).toContain('lake/members/metadata/v4.metadata.json')
  await expectComplete(fake)
})

test.each([
  { isPublished: false, mayDelete: true },
  { isPublished: true, mayDelete: true },
  { isPublished: true, mayDelete: false },
])(
  'files of an interrupted publication are removed by the next one that may remove them: %j',
  async ({ isPublished, mayDelete }) => {
    const fake = await fakeS3()
    const store = temporaryStore()
    const publish = async () => publishTo(await bucketOf(fake), store.path)
    if (isPublished) await publish()
    putMember(store, 'm', 'M')
    fake.fault = ({ method, key }) =>
      method === 'PUT' && /^lake\/members\/metadata\/v\d+\.metadata\.json$/.test(key)
        ? { status: 403, code: 'AccessDenied' }
        : undefined
    await expect(publish()).rejects.toMatchObject({ exitStatus: EXIT_STATUS.databaseUnavailable })
    const interrupted = () =>
      filesOf(fake, 'members').filter(key => key.includes(isPublished ? '/2-' : '/1-'))
    expect(interrupted()).toHaveLength(1)
    fake.fault = ({ method }) =>
      !mayDelete && method === 'DELETE' ? { status: 403, code: 'AccessDenied' } : undefined
    putMember(store, 'm', 'N')
    expect((await publish()).removal_error?.code).toBe(mayDelete ? undefined : 'publish-denied')
    await expectComplete(fake)
    fake.fault = () => undefined
    putMember(store, 'm', 'O')
    await publish()
    expect(interrupted()).toEqual([])
    await expectComplete(fake)
  },
)

test.each([false, true])(
  'files with erased content are removed at once, however new they are (the first sweep fails: %j)',
  async isInterrupted => {
    const fake = await fakeS3()
    const store = temporaryStore()
    putMember(store, 'm', 'before')
    await publishTo(await bucketOf(fake), store.path)
    const earlier = filesOf(fake, 'members')
    putMember(store, 'm', 'after')
    noteErasure(store, NOW)
    let removals = 0
    fake.fault = ({ method }) => {
      removals += method === 'DELETE' ? 1 : 0
      return isInterrupted && method === 'DELETE' && removals === 2
        ? { status: 403, code: 'AccessDenied' }
        : undefined
    }
    const { removal_error: error } = await publishTo(await bucketOf(fake), store.path)
    expect(error?.code).toBe(isInterrupted ? 'publish-denied' : undefined)
    if (isInterrupted) await publishTo(await bucketOf(fake), store.path)
    expect(earlier).toHaveLength(1)
    expect(filesOf(fake, 'members')).toHaveLength(1)
    expect(fake.keys()).not.toContain(earlier[0])
    const avro = fake.keys().filter(key => /^lake\/members\/metadata\/.*\.avro$/.test(key))
    expect(avro).toHaveLength(2)
    await expectComplete(fake)
  },
)

const SMALL_TABLES = ['teams', 'members', 'team_members']

const commitsIn = ({ calls }: FakeS3): string[] =>
  calls.flatMap(({ method, key }) =>
    method === 'PUT' && /\/v\d+\.metadata\.json$/.test(key) ? [key.split('/')[1] ?? ''] : [],
  )

test('a slow upload delays the commits of later tables, and the hint of owned rows those of their owners', async () => {
  const fake = await fakeS3()
  const store = temporaryStore()
  store.put('members', [{ id: 'm', name: 'M' }], { now: NOW })
  store.put('teams', [{ id: 't', name: 'T', member_ids: ['m'] }], { now: NOW })
  const hint = hold(fake, ({ key }) => key === 'lake/team_members/metadata/version-hint.text')
  const upload = hold(fake, ({ key }) => key.startsWith('lake/members/data/'))
  const publishing = publishTo(await bucketOf(fake), store.path, { tables: SMALL_TABLES })
  await hint.reached()
  expect(commitsIn(fake)).toEqual(['publications', 'team_members'])
  hint.release()
  await upload.reached()
  await until(
    () => fake.calls.map(({ key }) => key),
    keys => keys.some(key => /^lake\/teams\/metadata\/.*-snapshot\.avro$/.test(key)),
  )
  expect(commitsIn(fake)).toEqual(['publications', 'team_members'])
  upload.release()
  expect(await publishing).toMatchObject({ publication: 1 })
  expect(commitsIn(fake)).toEqual(['publications', 'team_members', 'members', 'teams', 'publications'])
})

test('an unchanged publication reads four objects of each table, and writes only the table publications', async () => {
  const fake = await fakeS3()
  const store = temporaryStore()
  putMember(store, 'm', 'M')
  await publishTo(await bucketOf(fake), store.path, { tables: SMALL_TABLES })
  const before = fake.calls.length
  await publishTo(await bucketOf(fake), store.path, { tables: SMALL_TABLES })
  const calls = fake.calls.slice(before)
  const count = (fits: (call: FakeCall) => boolean) => calls.filter(fits).length
  const isListing = ({ query }: FakeCall) => query.has('list-type')
  expect({
    listings: count(isListing),
    reads: count(call => call.method === 'GET' && !isListing(call) && /\/metadata\//.test(call.key)),
    writes: calls.filter(({ method }) => method === 'PUT').map(({ key }) => key.split('/')[1]),
    // Two find out whether the target is new.
  }).toEqual({
    listings: 2,
    reads: 4 * (SMALL_TABLES.length + 1),
    writes: ['.parley-publish', ...Array.from({ length: 7 }, () => 'publications')],
  })
})

test('a publication that expires others reads as much of the target, however many it keeps', async () => {
  const fake = await fakeS3()
  const store = temporaryStore()
  const reads: number[] = []
  const publish = async (keep: number) => {
    putMember(store, 'm', `M${fake.calls.length}`)
    const before = fake.calls.length
    await publishTo(await bucketOf(fake), store.path, { tables: ['members'], keep })
    return fake.calls.slice(before).filter(({ method, query }) => method === 'GET' && !query.has('list-type'))
  }
  for (const keep of [3, 3, 3, 3, 6, 6, 6, 6, 6, 6]) reads.push((await publish(keep)).length)
  expect(reads[9]).toBe(reads[3])
  expect(filesOf(fake, 'members')).toHaveLength(6)
})

test('half of an object in a complete answer is read once more before the table counts as damaged', async () => {
  const fake = await fakeS3()
  const store = temporaryStore()
  putMember(store, 'm', 'M')
  await publishTo(await bucketOf(fake), store.path)
  const read = new Set<string>()
  fake.fault = ({ method, key }) => {
    const isFirst = method === 'GET' && /\/metadata\//.test(key) && fake.objects.has(key) && !read.has(key)
    read.add(key)
    return isFirst ? 'half' : undefined
  }
  expect(await publishTo(await bucketOf(fake), store.path, { keep: 1 })).toMatchObject({ publication: 2 })
  // Only the sweep reads what the publication itself has written.
  expect([...read]).toContainEqual(expect.stringMatching(/\/publications\/metadata\/2-.+-snapshot\.avro$/))
  fake.fault = ({ method, key }) => (method === 'GET' && key.endsWith('.avro') ? 'half' : undefined)
  await expect(publishTo(await bucketOf(fake), store.path)).rejects.toMatchObject({ code: 'publish-damaged' })
})

test('a listing without the objects that are there stops the publication, and changes nothing', async () => {
  const fake = await fakeS3()
  const store = temporaryStore()
  await publishTo(await bucketOf(fake), store.path)
  const before = new Map(fake.objects)
  fake.fault = ({ query }) => (query.has('list-type') ? 'empty' : undefined)
  await expect(publishTo(await bucketOf(fake), store.path)).rejects.toMatchObject({
    code: 'publish-listing',
    exitStatus: EXIT_STATUS.unfinished,
  })
  expect(fake.objects).toEqual(before)
})
