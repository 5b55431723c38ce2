import { readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import type { TargetReader } from '../../../src/publish/storage/target-reader.ts'
import { verifyTarget } from '../../../src/publish/verify/verify.ts'
import { newFolder, temporaryStore } from '../../store/temporary-store.ts'
import { publishInto } from '../publishing.ts'
import { fakeS3 } from '../s3/fake-s3.ts'
import { bucketOf, readerOf } from '../s3/publishing.ts'
import { withChanged } from './verifying.ts'

const verify = (storage: TargetReader) =>
  verifyTarget({
    db: undefined,
    storage,
    clock: systemClock(),
    signal: new AbortController().signal,
    onProgress: () => undefined,
  })

async function publishedBucket() {
  const store = temporaryStore()
  store.put('members', [{ id: 'm', name: 'M' }])
  const s3 = await fakeS3()
  const publish = async () => publishInto(await bucketOf(s3), store.path, { keep: 1 })
  await publish()
  return { store, s3, publish }
}

test('a bucket is verified like a folder, and a damaged object is named', async () => {
  const { s3 } = await publishedBucket()
  expect(await verify(readerOf(s3))).toMatchObject({ publication: 1, faults: [] })
  const key = s3.keys().find(name => name.startsWith('lake/members/data/')) ?? ''
  const { bytes, at } = s3.objects.get(key) ?? { bytes: Buffer.alloc(0), at: 0 }
  s3.objects.set(key, { bytes: withChanged(bytes, bytes.length / 2), at })
  const { faults } = await verify(readerOf(s3))
  expect(faults.map(({ table, file }) => [table, file])).toEqual([['members', key.slice('lake/'.length)]])
})

test('credentials that may only list and read are enough to verify a bucket, and no temporary file stays', async () => {
  const { s3 } = await publishedBucket()
  s3.fault = ({ method }) => (method === 'GET' ? undefined : { status: 403, code: 'AccessDenied' })
  const temporary = newFolder()
  const reader = readerOf(s3, { temporary })
  expect(await verify(reader)).toMatchObject({ publication: 1, faults: [] })
  reader.close()
  expect(readdirSync(temporary)).toEqual([])
})

test('files that another publication removed meanwhile are not reported as damage, and other damage is', async () => {
  const { store, s3, publish } = await publishedBucket()
  store.put('teams', [{ id: 't', name: 'T', member_ids: [] }])
  await publish()
  const team = s3.keys().find(name => name.startsWith('lake/teams/data/')) ?? ''
  const { bytes, at } = s3.objects.get(team) ?? { bytes: Buffer.alloc(0), at: 0 }
  s3.objects.set(team, { bytes: bytes.subarray(1), at })
  const reader = readerOf(s3)
  let isFirst = true
  const overtaken: TargetReader = {
    ...reader,
    async open(path) {
      if (path.startsWith('members/data/') && isFirst) {
        isFirst = false
        store.put('members', [{ id: 'm', name: 'changed' }])
        await publish()
      }
      return reader.open(path)
    },
  }
  const { faults } = await verify(overtaken)
  expect(faults.map(({ file, kind }) => [file, kind])).toEqual([[team.slice('lake/'.length), 'size']])
})
