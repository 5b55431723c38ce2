import { expect, test } from 'vitest'
import { type CheckedPart, formFaults } from '../../../../src/publish/clickhouse/verify/compare-forms.ts'
import { hintFor } from '../../../../src/publish/clickhouse/verify/fault.ts'

const shown = (part: string, writtenIn: number, rows = 3, checksum = 'c'): CheckedPart => ({
  ...{ publication: 9, source: 's', part, position: 0, written_in: writtenIn },
  ...{ digest: 'd', checksum, rows, bytes: 1 },
})

const stored = (part: string, writtenIn: number, { rows = 3, checksum = 'c', erased = 0 } = {}) => ({
  part,
  writtenIn,
  rows,
  checksum,
  erased,
})

const kinds = (faults: ReturnType<typeof formFaults>) =>
  faults.map(({ part, writtenIn, kind }) => [part, writtenIn, kind])

test('a part that two publications show is checked once, and rows that none shows are no fault', () => {
  const parts = [shown('a', 1), shown('a', 1), shown('a', 2), shown('', 2)]
  const rows = [stored('a', 1), stored('a', 2), stored('', 2), stored('a', 3)]
  expect(formFaults(parts, rows, 9)).toEqual([])
  expect(kinds(formFaults(parts, [], 9))).toEqual([
    ['a', 1, 'missing'],
    ['a', 2, 'missing'],
    ['', 2, 'missing'],
  ])
})

test('another number of rows comes before other values, and a part without rows is not missing', () => {
  const other = { checksum: 'other' }
  expect(kinds(formFaults([shown('a', 1)], [stored('a', 1, other)], 9))).toEqual([['a', 1, 'values']])
  expect(kinds(formFaults([shown('a', 1)], [stored('a', 1, { ...other, rows: 4 })], 9))).toEqual([
    ['a', 1, 'rows'],
  ])
  expect(formFaults([shown('a', 1, 0)], [], 9)).toEqual([])
  expect(kinds(formFaults([shown('a', 1, 0)], [stored('a', 1)], 9))).toEqual([['a', 1, 'rows']])
})

test('of a part without a checksum, only the rows count', () => {
  const unchecked = { ...shown('a', 1), checksum: undefined }
  expect(formFaults([unchecked], [stored('a', 1)], 9)).toEqual([])
  expect(kinds(formFaults([unchecked], [stored('a', 1, { rows: 2 })], 9))).toEqual([['a', 1, 'rows']])
})

test('purged content is a fault in every part, except of publications that began after the warehouse was read', () => {
  const erased = { erased: 2 }
  const rows = [stored('a', 1, erased), stored('b', 2, erased), stored('c', 5, erased)]
  const faults = formFaults([shown('a', 1)], rows, 4)
  expect(kinds(faults)).toEqual([
    ['a', 1, 'erased'],
    ['b', 2, 'erased'],
  ])
  expect(faults.map(({ message }) => message)).toEqual([
    '2 rows with content that was purged',
    '2 rows with content that was purged, which no publication shows',
  ])
})

test('a hint has statements that can be run as they are, also on a cluster', () => {
  const form = { source: '_parley_members_00000000', part: `["it's"]`, writtenIn: 3 }
  const alone = { place: { database: 'lake', cluster: undefined, isReplicated: false }, isModern: true }
  expect(hintFor({ ...alone, target: 'clickhouse://a:1/lake' }, 'values', form)).toMatch(
    /^Run ALTER TABLE `lake`\.`_parley_members_00000000` DROP PARTITION \('\["it\\'s"\]', 3\) on the server, then parley publish 'clickhouse:\/\/a:1\/lake' --full --keep 2 twice: /,
  )
  const two = { place: { database: 'lake', cluster: 'two', isReplicated: false }, isModern: false }
  const target = 'clickhouse://a:1/lake?cluster=two'
  expect(hintFor({ ...two, target }, 'rows', form)).toContain(
    'ALTER TABLE `lake`.`_parley_members_00000000_local` ON CLUSTER `two` DROP PARTITION',
  )
  expect(hintFor({ ...two, target }, 'unreadable', { ...form, writtenIn: undefined })).toContain(
    'run DROP TABLE IF EXISTS `lake`.`_parley_members_00000000` ON CLUSTER `two`; DROP TABLE IF EXISTS',
  )
  expect(hintFor({ ...alone, target }, 'erased', form)).toMatch(/^Run parley publish '/)
})
