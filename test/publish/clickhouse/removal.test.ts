import { expect, test } from 'vitest'
import {
  dropPartLists,
  dropParts,
  keptPublications,
  unneededParts,
  unneededSources,
  unneededViews,
} from '../../../src/publish/clickhouse/removal.ts'
import { completed, shown, stored } from './state-rows.ts'

const ALONE = { database: 'lake', cluster: undefined, isReplicated: false }

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

test('the views of a table that is left out go, and views of other programs stay', () => {
  const view = (digest: string) => ({ engine: 'View', digest })
  const relations = new Map([
    ['_parley_members_0123abcd', { engine: 'MergeTree', digest: '' }],
    ['members', view('a')],
    ['live_members', view('b')],
    ['labelled_members', view('')],
    ['my_members', view('b')],
    ['teams', view('c')],
  ])
  expect(unneededViews(relations, [{ name: 'teams' }])).toEqual(['members', 'live_members'])
  expect(unneededViews(relations, [{ name: 'members' }])).toEqual(['live_members'])
})

test('a table of rows goes when nothing is written to it and no kept publication shows it', () => {
  const [now, earlier, other] = ['_parley_s_00000001', '_parley_s_00000002', '_parley_parts']
  const relations = new Map([now, earlier, other].map(name => [name, { engine: 'MergeTree', digest: '' }]))
  const parts = [{ ...shown(1, 'a', 1), source: earlier }]
  const gone = (kept: number) => unneededSources(relations, new Set([now]), { parts }, new Set([kept]))
  expect(gone(1)).toEqual([])
  expect(gone(2)).toEqual([earlier])
})
