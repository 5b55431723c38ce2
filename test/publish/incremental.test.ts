import { join } from 'node:path'
import { asyncBufferFromFile, parquetMetadataAsync } from 'hyparquet'
import { ParquetWriter } from 'hyparquet-writer'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { type TemporaryStore, temporaryStore } from '../store/temporary-store.ts'
import { markedWorld, putTranscript } from '../store/unique-texts.ts'
import { auditLake } from './lake-audit.ts'
import { liveFiles, metadataOf, rowsByIcebird, rowsOf } from './lake-reader.ts'
import { dataWrittenBy, filesIn, newLake, publishTo, writtenBy } from './publishing.ts'
import { verify } from './verify/verifying.ts'

const NOW = '2026-06-30T12:00:00.000Z'

function addActivity(store: TemporaryStore, id: string, occurredAt: string | null): void {
  const time = occurredAt === null ? 'NULL' : `'${occurredAt}'`
  store.exec(
    `INSERT INTO activities (id, occurred_at, type, _first_seen_at, _synced_at) VALUES ('${id}', ${time}, 't', '${NOW}', '${NOW}')`,
  )
}

/** A warehouse with three activities in three months. */
function threeMonths(): TemporaryStore {
  const store = temporaryStore()
  for (const month of ['01', '02', '03']) addActivity(store, `a${month}`, `2026-${month}-02T00:00:00.000Z`)
  return store
}

test('the publication of an unchanged warehouse writes only the table of publications', async () => {
  const store = temporaryStore()
  markedWorld(store, value => value).write('2026-03-04T05:06:07.123Z')
  const lake = await newLake()
  await publishTo(store.path, lake)
  const before = filesIn(lake.folder)
  const second = await publishTo(store.path, lake)
  expect(writtenBy(second)).toEqual({ publications: 1 })
  const others = (files: readonly string[]) => files.filter(file => !file.startsWith('publications/'))
  expect(others(filesIn(lake.folder))).toEqual(others(before))
  await auditLake(lake)
})

test('a changed row of a table with months writes one file, and the files of other months stay', async () => {
  const store = threeMonths()
  const lake = await newLake()
  await publishTo(store.path, lake)
  const [january, february, march] = await liveFiles(lake, 'activities')
  store.exec("UPDATE activities SET type = 'changed' WHERE id = 'a02'")
  const second = await publishTo(store.path, lake)
  expect(dataWrittenBy(second)).toEqual({ activities: 1, publications: 1 })
  const after = await liveFiles(lake, 'activities')
  expect([after[0], after[2]]).toEqual([january, march])
  expect(after[1]).not.toBe(february)
  expect((await rowsByIcebird(lake, 'activities')).map(row => row['type'])).toEqual(['t', 'changed', 't'])
  await auditLake(lake)
})

test('a row that moves to another month writes both months, and a month without rows has no file', async () => {
  const store = threeMonths()
  const lake = await newLake()
  await publishTo(store.path, lake)
  const files = await liveFiles(lake, 'activities')
  store.exec("UPDATE activities SET occurred_at = '2026-03-05T00:00:00.000Z' WHERE id = 'a02'")
  expect(dataWrittenBy(await publishTo(store.path, lake))).toEqual({ activities: 1, publications: 1 })
  const moved = await liveFiles(lake, 'activities')
  expect(moved).toHaveLength(2)
  expect(moved[0]).toBe(files[0])
  addActivity(store, 'b01', '2026-01-05T00:00:00.000Z')
  store.exec("UPDATE activities SET occurred_at = '2026-01-09T00:00:00.000Z' WHERE id = 'a02'")
  expect(dataWrittenBy(await publishTo(store.path, lake))).toEqual({ activities: 2, publications: 1 })
  expect((await rowsByIcebird(lake, 'activities')).map(row => row['id'])).toEqual([
    'a01',
    'b01',
    'a02',
    'a03',
  ])
  store.exec('DELETE FROM activities')
  await publishTo(store.path, lake)
  expect(await rowsByIcebird(lake, 'activities')).toEqual([])
  await auditLake(lake)
})

test('rows without a time have a file with no month, which goes when they get one', async () => {
  const store = threeMonths()
  addActivity(store, 'timeless', null)
  const lake = await newLake()
  await publishTo(store.path, lake)
  expect((await rowsByIcebird(lake, 'activities')).map(row => row['occurred_at']).at(-1)).toBeNull()
  await auditLake(lake)
  store.exec("UPDATE activities SET occurred_at = '2026-03-05T00:00:00.000Z' WHERE id = 'timeless'")
  expect(dataWrittenBy(await publishTo(store.path, lake))).toEqual({ activities: 1, publications: 1 })
  expect(await liveFiles(lake, 'activities')).toHaveLength(3)
  await auditLake(lake)
})

test('the rows of a meeting move with it to another month', async () => {
  const store = temporaryStore()
  const world = markedWorld(store, value => value)
  world.write('2026-03-04T05:06:07.123Z')
  putTranscript(store, world.meeting, [{ text: 'said', words: [] }])
  const lake = await newLake()
  await publishTo(store.path, lake)
  store.exec("UPDATE meetings SET start_time = '2024-07-09T00:00:00.000Z'")
  expect(dataWrittenBy(await publishTo(store.path, lake))).toMatchObject({
    meetings: 1,
    transcript_entries: 1,
  })
  expect((await rowsByIcebird(lake, 'transcript_entries')).map(row => row['_month'])).toEqual(['2024-07'])
  await auditLake(lake)
})

test('a changed row of a large table without a time writes only the range of its key', async () => {
  const store = temporaryStore()
  const add = (prefix: string, rows: number) =>
    store.exec(
      `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${rows})
       INSERT INTO members (id, name, _first_seen_at, _synced_at)
       SELECT printf('${prefix}%06d', i), 'n', '${NOW}', '${NOW}' FROM n`,
    )
  add('m', 25_000)
  const lake = await newLake()
  await publishTo(store.path, lake)
  const first = await liveFiles(lake, 'members')
  expect(first).toHaveLength(3)
  store.exec("UPDATE members SET name = 'changed' WHERE id = 'm015000'")
  expect(dataWrittenBy(await publishTo(store.path, lake))).toEqual({
    members: 1,
    member_versions: 1,
    publications: 1,
  })
  const second = await liveFiles(lake, 'members')
  expect([second[0], second[2]]).toEqual([first[0], first[2]])
  add('a', 12_000)
  add('z', 10)
  store.exec("DELETE FROM members WHERE id BETWEEN 'm010001' AND 'm020000'")
  expect(dataWrittenBy(await publishTo(store.path, lake))).toEqual({
    members: 3,
    member_versions: 3,
    publications: 1,
  })
  const rows = await rowsByIcebird(lake, 'members')
  expect(rows.map(row => row['id'])).toEqual(store.column('SELECT id FROM members ORDER BY id'))
  await auditLake(lake)
})

test('a clock that is set back does not set the instants of a table back', async () => {
  const store = temporaryStore()
  const lake = await newLake()
  const at = (now: number) => ({ clock: { ...systemClock(), now: () => now } })
  await publishTo(store.path, lake, at(2_000_000_000_000))
  store.put('members', [{ id: 'm', name: 'M' }])
  await publishTo(store.path, lake, at(1_000_000_000_000))
  const { snapshots } = await metadataOf(lake, 'members')
  expect(snapshots.map(snapshot => snapshot['timestamp-ms'])).toEqual([2_000_000_000_000, 2_000_000_000_000])
  expect(await rowsOf(lake, 'members')).toHaveLength(1)
  await auditLake(lake)
})

test('all tables show one instant, whatever is written meanwhile', async () => {
  const store = temporaryStore()
  store.put('members', [{ id: 'm', name: 'M' }])
  const lake = await newLake()
  await publishTo(store.path, lake, {
    through: storage => ({
      ...storage,
      write(path, bytes) {
        store.exec("UPDATE members SET name = name || '+'; UPDATE teams SET name = 'new'")
        return storage.write(path, bytes)
      },
    }),
  })
  expect(await rowsOf(lake, 'members')).toMatchObject([{ name: 'M' }])
})

/** While `work` runs, files are written as earlier versions of parley did. */
async function inSnappy(work: () => Promise<unknown>): Promise<void> {
  const { write } = ParquetWriter.prototype
  ParquetWriter.prototype.write = function (...group) {
    this.codec = 'SNAPPY'
    return write.apply(this, group)
  }
  try {
    await work()
  } finally {
    ParquetWriter.prototype.write = write
  }
}

test('files of an earlier version stay in Snappy next to new ones in gzip, and the table verifies and reads', async () => {
  const store = threeMonths()
  const lake = await newLake()
  await inSnappy(() => publishTo(store.path, lake))
  store.exec("UPDATE activities SET type = 'changed' WHERE id = 'a02'")
  expect(dataWrittenBy(await publishTo(store.path, lake))).toEqual({ activities: 1, publications: 1 })
  const codecs = (await liveFiles(lake, 'activities')).map(async path => {
    const { row_groups: groups } = await parquetMetadataAsync(
      await asyncBufferFromFile(join(lake.folder, path)),
    )
    return new Set(groups.flatMap(({ columns }) => columns.map(({ meta_data: of }) => of?.codec)))
  })
  expect((await Promise.all(codecs)).map(found => [...found])).toEqual([['SNAPPY'], ['GZIP'], ['SNAPPY']])
  expect(await verify(lake, store.path)).toMatchObject({ faults: [], compared: true })
  for (const read of [rowsByIcebird, rowsOf])
    expect((await read(lake, 'activities')).map(row => row['type'])).toEqual(['t', 'changed', 't'])
  await auditLake(lake)
})
