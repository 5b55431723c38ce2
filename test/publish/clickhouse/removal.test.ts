import { expect, test } from 'vitest'
import {
  dropChecksums,
  dropPartLists,
  dropParts,
  keptPublications,
  unneededParts,
} from '../../../src/publish/clickhouse/removal.ts'
import type { PartRow } from '../../../src/publish/clickhouse/state-tables.ts'

const ALONE = { database: 'lake', cluster: undefined, isReplicated: false }

const completed = (publication: number, purgedAt = '') => ({
  publication,
  published_at: '',
  complete_as_of: null,
  fresh_as_of: null,
  warehouse: '',
  purged_at: purgedAt,
})

const shown = (publication: number, part: string, writtenIn: number): PartRow => ({
  publication,
  source: 's',
  part,
  position: 0,
  written_in: writtenIn,
  digest: '',
  rows: 1,
  bytes: 1,
})

const stored = (part: string, writtenIn: number) => ({ source: 's', part, writtenIn, rows: 1 })

test('the newest publications stay, but none from before the last purge', () => {
  const all = [completed(1), completed(2), completed(4)]
  expect([...keptPublications(all, 2, '')]).toEqual([2, 4])
  expect([...keptPublications([...all, completed(5, 'yesterday')], 9, 'yesterday')]).toEqual([5])
})

test('parts that no kept publication shows are removed, except those of a later publication', () => {
  const parts = [shown(2, 'a', 1), shown(2, 'b', 2), shown(4, 'a', 4), shown(4, 'b', 2)]
  const rows = [
    stored('a', 1),
    stored('b', 1),
    stored('b', 2),
    stored('a', 3),
    stored('a', 4),
    stored('a', 5),
  ]
  expect(unneededParts(rows, { parts }, new Set([2, 4]), 4)).toEqual([stored('b', 1), stored('a', 3)])
  expect(unneededParts(rows, { parts }, new Set([4]), 4)).toEqual([
    stored('a', 1),
    stored('b', 1),
    stored('a', 3),
  ])
})

test('a part is dropped as the partition that it is', () => {
  expect(dropParts(ALONE, [stored(`["it's"]`, 3), stored('', 4)])).toEqual([
    `ALTER TABLE \`lake\`.\`s\` DROP PARTITION ('["it\\'s"]', 3), DROP PARTITION ('', 4)`,
  ])
  expect(dropParts(ALONE, [])).toEqual([])
  expect(dropPartLists(ALONE, [shown(1, 'a', 1), shown(2, 'a', 1)], new Set([2]))).toEqual([
    'ALTER TABLE `lake`.`_parley_parts` DROP PARTITION 1',
  ])
})

test('the checksums of a publication go with the last of the parts that it wrote', () => {
  const rows = [stored('a', 1), stored('b', 1), stored('a', 2), stored('b', 3)]
  const [a1, b1, a2] = rows
  const statements = (...removed: (typeof a1)[]) =>
    dropChecksums(
      ALONE,
      rows,
      removed.flatMap(one => one ?? []),
    )
  expect(statements(a1, a2)).toEqual(['ALTER TABLE `lake`.`_parley_checksums` DROP PARTITION 2'])
  expect(statements(a1, b1)).toEqual(['ALTER TABLE `lake`.`_parley_checksums` DROP PARTITION 1'])
  expect(statements(a1)).toEqual([])
})
