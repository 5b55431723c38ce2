import { expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import type { Storage } from '../../../src/publish/storage/storage.ts'
import { verifyTarget } from '../../../src/publish/verify/verify.ts'
import { temporaryStore } from '../../store/temporary-store.ts'
import { fakeS3 } from '../s3/fake-s3.ts'
import { bucketOf, publishTo } from '../s3/publishing.ts'
import { withChanged } from './verifying.ts'

const verify = (storage: Storage) =>
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
  const publish = async () => publishTo(await bucketOf(s3), store.path, { keep: 1 })
  await publish()
  return { store, s3, publish }
}

test('a bucket is verified like a folder, and a damaged object is named', async () => {
  const { s3 } = await publishedBucket()
  expect(await verify(await bucketOf(s3))).toMatchObject({ publication: 1, faults: [] })
  const key = s3.keys().find(name => name.startsWith('lake/members/data/')) ?? ''
  const { bytes, at } = s3.objects.get(key) ?? { bytes: Buffer.alloc(0), at: 0 }
  s3.objects.set(key, { bytes: withChanged(bytes, bytes.length / 2), at })
  const { faults } = await verify(await bucketOf(s3))
  expect(faults.map(({ table, file }) => [table, file])).toEqual([['members', key.slice('lake/'.length)]])
})

test('a file that another publication removed meanwhile is not reported as damage', async () => {
  const { store, s3, publish } = await publishedBucket()
  const storage = await bucketOf(s3)
  let isFirst = true
  const overtaken: Storage = {
    ...storage,
    async read(path) {
      if (path.startsWith('members/data/') && isFirst) {
        isFirst = false
        store.put('members', [{ id: 'm', name: 'changed' }])
        await publish()
      }
      return storage.read(path)
    },
  }
  await expect(verify(overtaken)).rejects.toMatchObject({ code: 'publish-overtaken', exitStatus: 75 })
})
