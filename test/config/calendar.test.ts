import fc from 'fast-check'
import { expect, test } from 'vitest'
import { nextOccurrence } from '../../src/config/calendar.ts'
import { calendar, folder, publishTarget, recurrence, tableList } from '../../src/config/kinds.ts'
import { runs } from '../support/effort.ts'

const read = (value: unknown) => calendar.read(value, { cwd: '/' })

test.each(['hourly', 'daily', 'weekly'])('%s is a calendar time', word => {
  const pattern = read(word) ?? ''
  const at = Date.parse('2026-03-04T10:30:00.000Z')
  const days = { hourly: 1 / 24, daily: 1, weekly: 7 }[word] ?? 0
  const first = nextOccurrence(pattern, at)
  expect(first - at).toBeLessThanOrEqual(days * 86_400_000)
  expect(nextOccurrence(pattern, first) - first).toBeCloseTo(days * 86_400_000, -7)
})

test.each([
  '0 * * * *',
  ' 30  */6 * * * ',
  '0 3 1,15 * 1-5',
  '5-55/10 0-23 31 12 0',
  '0 0 29 2 *',
  '0 0 30 2 1',
])('the pattern "%s" is accepted unchanged, and has a next occurrence', pattern => {
  expect(read(pattern)).toBe(pattern.trim())
  expect(nextOccurrence(pattern.trim(), 0)).toBeGreaterThan(0)
  expect(nextOccurrence(pattern.trim(), 0)).toBeLessThan(Number.POSITIVE_INFINITY)
})

test.each([
  'often',
  '',
  '* * * *',
  '* * * * * *',
  '60 * * * *',
  '* 24 * * *',
  '* * 0 * *',
  '* * * 13 *',
  '* * * * 8',
  '5-1 * * * *',
  '*/0 * * * *',
  '*/75 * * * *',
  '0 */30 * * *',
  '0 0 * * */9',
  '1/5 * * * *',
  '*x * * * *',
  '1, * * * *',
  '@daily',
  7,
])('%j is not a calendar time', value => {
  expect(read(value)).toBeUndefined()
})

test.each(['0 0 30 2 *', '0 0 31 2 *', '0 0 31 2,4,6,9,11 *', '*/5 * 30-31 2 *'])(
  'the pattern "%s" is refused, since it never occurs',
  pattern => {
    expect(read(pattern)).toBeUndefined()
  },
)

test('every cron pattern that is accepted can be scheduled', () => {
  const number = fc.integer({ min: 0, max: 70 }).map(String)
  const range = fc.oneof(
    fc.constant('*'),
    fc.tuple(number, number).map(ends => ends.join('-')),
  )
  const part = fc.oneof(
    number,
    range,
    fc.tuple(range, number).map(([of, step]) => `${of}/${step}`),
  )
  const pattern = fc.array(part, { minLength: 5, maxLength: 5 }).map(parts => parts.join(' '))
  const field = fc
    .tuple(fc.nat({ max: 4 }), part)
    .map(([at, each]) => ['*', '*', '*', '*', '*'].with(at, each).join(' '))
  fc.assert(
    fc.property(fc.oneof(pattern, field), each => {
      if (read(each) !== undefined) expect(nextOccurrence(each, 0)).toBeLessThan(Number.POSITIVE_INFINITY)
    }),
    { numRuns: runs(2000) },
  )
})

test('a folder may end with slashes', () => {
  const at = (value: unknown) => folder.read(value, { cwd: '/srv' })
  expect([at('a'), at('a/'), at('/b//'), at('/')]).toEqual(['/srv/a', '/srv/a', '/b', undefined])
  expect([at(''), at(3)]).toEqual([undefined, undefined])
})

test.each<[unknown, unknown]>([
  ['5m', { by: 'interval', ms: 300_000 }],
  ['90 s', { by: 'interval', ms: 90_000 }],
  ['7d', { by: 'interval', ms: 604_800_000 }],
  ['hourly', { by: 'calendar', pattern: '7 * * * *' }],
  ['30 */6 * * *', { by: 'calendar', pattern: '30 */6 * * *' }],
  ...['0m', '8d', '5', '5 minutes', '1.5h', '-5m', '', 300, true].map((value): [unknown, unknown] => [
    value,
    undefined,
  ]),
])('the recurrence %j is read as %j', (value, expected) => {
  expect(recurrence.read(value, { cwd: '/' })).toEqual(expected)
})

test.each<[unknown, unknown]>([
  ['lake/', '/data/lake'],
  ['/lake', '/lake'],
  ['s3://bucket/lake', 's3://bucket/lake'],
  ...['', 's3://B/lake', 's3://key:secret@bucket/lake', 's3:bucket', 'gs://bucket/lake', 7].map(
    (value): [unknown, unknown] => [value, undefined],
  ),
])('the target %j is read as %j', (value, expected) => {
  expect(publishTarget.read(value, { cwd: '/data' })).toBe(expected)
})

test('a list of tables may name tables of CRM objects, and an unknown name is refused with the nearest one', () => {
  const within = { cwd: '/', tableNames: ['members', 'messages'] }
  expect(tableList.read(['messages', 'crm_deal', 'messages'], within)).toEqual(['messages', 'crm_deal'])
  expect(tableList.read(['Messages', 'CRM_deal'], within)).toEqual(['Messages', 'CRM_deal'])
  expect(tableList.read(['anything'], { cwd: '/' })).toEqual(['anything'])
  for (const value of [[], ['mesages'], [''], [7], 'messages'])
    expect(tableList.read(value, within)).toBe(undefined)
  expect(tableList.fault?.(['members', 'mesages'], within)).toBe(
    'there is no table "mesages"; did you mean messages?',
  )
  expect(tableList.fault?.(['robots'], within)).toBe('there is no table "robots"')
  expect(tableList.fault?.([], within)).toBe(undefined)
})
