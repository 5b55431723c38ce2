import { expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { createCatalogue } from '../../../src/publish/catalogue/catalogue.ts'
import { temporaryStore } from '../../store/temporary-store.ts'
import { publishInto } from '../publishing.ts'
import { fakeS3 } from './fake-s3.ts'
import { bucketOf, readerOf } from './publishing.ts'

test('the catalogue reads a bucket with GET requests only, also while another process publishes', async () => {
  const server = await fakeS3()
  const store = temporaryStore()
  const storage = await bucketOf(server)
  await publishInto(storage, store.path, { tables: ['meetings'] })
  const writer = await bucketOf(server)
  const before = server.calls.length
  const reader = readerOf(server)
  const found = await createCatalogue(reader, systemClock()).table('meetings')
  writer.close()
  expect(found?.address).toBe('s3://lake-of-acme/lake/meetings/metadata/v1.metadata.json')
  expect(new Set(server.calls.slice(before).map(({ method }) => method))).toEqual(new Set(['GET']))
})
