import { expect, test } from 'vitest'
import { EXIT_STATUS } from '../../../src/base/errors.ts'
import { readLastPublication } from '../../../src/publish/catalogue/complete-publication.ts'
import { readTarget } from '../../../src/publish/published-state.ts'
import { type TemporaryStore, temporaryStore } from '../../store/temporary-store.ts'
import { dyingAfter, KILLED } from '../dying-storage.ts'
import { publishInto } from '../publishing.ts'
import { type FakeCall, type FakeS3, fakeS3 } from './fake-s3.ts'
import { bucketOf, readerOf, twinOf } from './publishing.ts'

const TABLES = ['members', 'teams']

const publish = async (fake: FakeS3, { path }: TemporaryStore, tables: readonly string[] = TABLES) =>
  publishInto(await bucketOf(fake), path, { tables })

const putMember = (store: TemporaryStore, name: string) => store.put('members', [{ id: 'm', name }])
const putTeam = (store: TemporaryStore, name: string) =>
  store.put('teams', [{ id: 't', name, member_ids: [] }])

/** Two copies of a warehouse, of which one has another member and the other another team. */
async function twoCopies({ isPublished }: { isPublished: boolean }) {
  const fake = await fakeS3()
  const one = temporaryStore()
  putMember(one, 'M')
  putTeam(one, 'T')
  if (isPublished) await publish(fake, one)
  const other = twinOf(one)
  putMember(one, 'changed by one')
  putTeam(other, 'changed by the other')
  return { fake, one, other }
}

function newSignal() {
  let give: () => void = () => undefined
  const given = new Promise<void>(resolve => {
    give = resolve
  })
  return { given, give: () => give() }
}

/** Holds the next request to change this object before it has an effect. */
function holdNext(fake: FakeS3, { method, key }: { method: string; key: RegExp }) {
  const before = fake.fault
  const [held, released] = [newSignal(), newSignal()]
  let isHeld = false
  fake.fault = async (call: FakeCall) => {
    if (!isHeld && call.method === method && key.test(call.key)) {
      isHeld = true
      held.give()
      await released.given
    }
    return before(call)
  }
  return { reached: held.given, release: released.give }
}

const isOvertaken = { code: 'publish-overtaken', exitStatus: EXIT_STATUS.unfinished }

/** The newest rows of each table are those of the last complete publication, and that is of this warehouse. */
async function expectOnlyFrom(fake: FakeS3, store: TemporaryStore): Promise<void> {
  const reader = readerOf(fake)
  const last = await readLastPublication(reader)
  const { tables } = await readTarget(reader)
  const newest = [...tables].map(([folder, { metadata }]) => [folder, metadata['current-snapshot-id']])
  expect(Object.fromEntries(newest)).toEqual({ ...last?.snapshots, publications: last?.publication })
  const { tables: compared } = await publish(fake, store)
  const written = compared.filter(({ filesWritten }) => filesWritten > 0)
  expect(written.map(({ folder }) => folder)).toEqual(['publications'])
}

test.each<[where: string, isPublished: boolean, key: RegExp]>([
  ['before it commits', true, /members\/data\//],
  ['while a commit is on its way', true, /members\/metadata\/v2\.metadata\.json$/],
  ['while its completion is on its way', true, /publications\/metadata\/v4\.metadata\.json$/],
  ['in the first publication', false, /members\/metadata\/v1\.metadata\.json$/],
])(
  'a publication that is paused %s cannot change anything once another one has begun',
  async (_, isPublished, key) => {
    const { fake, one, other } = await twoCopies({ isPublished })
    const paused = holdNext(fake, { method: 'PUT', key })
    const first = publish(fake, one)
    await paused.reached
    await publish(fake, other)
    const before = fake.keys().filter(name => /metadata\.json$/.test(name))
    paused.release()
    await expect(first).rejects.toMatchObject(isOvertaken)
    expect(fake.keys().filter(name => /metadata\.json$/.test(name))).toEqual(before)
    await expectOnlyFrom(fake, other)
  },
)

test('a publication that is paused creates no table once another one has begun', async () => {
  const { fake, one, other } = await twoCopies({ isPublished: false })
  const paused = holdNext(fake, { method: 'PUT', key: /members\/data\// })
  const first = publish(fake, one)
  await paused.reached
  await publish(fake, other, ['teams'])
  paused.release()
  await expect(first).rejects.toMatchObject(isOvertaken)
  expect(fake.keys().filter(key => /members\/.*metadata\.json$/.test(key))).toEqual([])
})

test.each<[what: string, isPublished: boolean, key: RegExp]>([
  ['while another publication begins', true, /members\/metadata\/v2\.metadata\.json$/],
  ['with a new table when another publication has begun', false, /members\/metadata\/v1\.metadata\.json$/],
])('a commit that arrives %s does not stay, and the other one completes', async (_, isPublished, key) => {
  const { fake, one, other } = await twoCopies({ isPublished })
  const commit = { method: 'PUT', key }
  const late = holdNext(fake, commit)
  const first = publish(fake, one)
  await late.reached
  const own = holdNext(fake, commit)
  const second = publish(fake, other)
  await own.reached
  late.release()
  await expect(first).rejects.toMatchObject(isOvertaken)
  own.release()
  expect(await second).toMatchObject({ publication: 3 })
  await expectOnlyFrom(fake, other)
})

test('a table whose commit arrives after the next publication has left it out is written again by a later one', async () => {
  const { fake, one, other } = await twoCopies({ isPublished: false })
  const late = holdNext(fake, { method: 'PUT', key: /members\/metadata\/v1\.metadata\.json$/ })
  const first = publish(fake, one)
  await late.reached
  await publish(fake, other, ['teams'])
  late.release()
  await expect(first).rejects.toMatchObject(isOvertaken)
  expect(fake.keys().some(key => /members\/metadata\/v1\.metadata\.json$/.test(key))).toBe(true)
  await publish(fake, other)
  await expectOnlyFrom(fake, other)
})

test('two publications that begin at the same time do not both go on', async () => {
  const { fake, one, other } = await twoCopies({ isPublished: true })
  const begin = holdNext(fake, { method: 'PUT', key: /publications\/metadata\/v3\.metadata\.json$/ })
  const first = publish(fake, one)
  await begin.reached
  await publish(fake, other)
  begin.release()
  await expect(first).rejects.toMatchObject(isOvertaken)
  await expectOnlyFrom(fake, other)
})

test('a publication that is still removing files when another begins has succeeded and leaves the rest to it', async () => {
  const { fake, one, other } = await twoCopies({ isPublished: true })
  const sweep = holdNext(fake, { method: 'DELETE', key: /./ })
  const publishFirst = async () => publishInto(await bucketOf(fake), one.path, { tables: TABLES, keep: 1 })
  const first = publishFirst()
  await sweep.reached
  await publish(fake, other)
  sweep.release()
  expect(await first).toMatchObject({ publication: 2 })
  await expectOnlyFrom(fake, other)
})

test('a publication that was killed at any step is taken over by the next one, which is complete', async () => {
  const fake = await fakeS3()
  const store = temporaryStore()
  let step = 0
  for (let isKilled = true; isKilled; step += 3) {
    putMember(store, `member ${step}`)
    putTeam(store, `team ${step}`)
    const dying = dyingAfter(step)
    const storage = dying.through(await bucketOf(fake))
    const ended = publishInto(storage, store.path, { tables: TABLES })
    await ended.catch(error => expect(error.message).toBe(KILLED))
    isKilled = dying.isDead()
    if (isKilled && step % 2 === 0) await publish(fake, store)
    else if (!isKilled) await expectOnlyFrom(fake, store)
  }
  expect(step).toBeGreaterThan(15)
})
