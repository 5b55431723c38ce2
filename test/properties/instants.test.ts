import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { canonicalInstant, isDay } from '../../src/base/instant.ts'
import { entity, text, timestamp } from '../../src/declare/table.ts'
import { compileParser } from '../../src/engine/parse/parse.ts'
import { runs } from '../support/effort.ts'

const pad = (number: number, digits = 2) => String(number).padStart(digits, '0')

/** An instant between the years 2 and 9998, and how one API or another would write it. */
const spelled = fc
  .record({
    ms: fc.integer({ min: Date.parse('0002-01-01T00:00:00Z'), max: Date.parse('9998-12-31T00:00:00Z') }),
    precision: fc.constantFrom('minute', 'second', 'millisecond', 'nanosecond'),
    basic: fc.boolean(),
    separator: fc.constantFrom('T', 't', ' '),
    decimal: fc.constantFrom('.', ','),
    zone: fc.constantFrom('', 'Z', 'z', '+hh', '+hhmm', '+hh:mm'),
    aheadMinutes: fc.integer({ min: -23 * 60, max: 23 * 60 }),
  })
  .map(({ ms, precision, basic, separator, decimal, zone, aheadMinutes }) => {
    const unit = { minute: 60_000, second: 1000, millisecond: 1, nanosecond: 1 }[precision] ?? 1
    const instant = ms - (((ms % unit) + unit) % unit)
    const step = zone === '+hh' ? 60 : 1
    const ahead = zone.startsWith('+') ? Math.trunc(aheadMinutes / step) * step : 0
    const local = new Date(instant + ahead * 60_000)
    const [dash, colon] = basic ? ['', ''] : ['-', ':']
    const day = [pad(local.getUTCFullYear(), 4), pad(local.getUTCMonth() + 1), pad(local.getUTCDate())].join(
      dash,
    )
    const fraction = { minute: '', second: '', millisecond: '', nanosecond: '987654' }[precision] ?? ''
    const seconds = `${colon}${pad(local.getUTCSeconds())}`
    const parts = [
      [pad(local.getUTCHours()), pad(local.getUTCMinutes())].join(colon),
      precision === 'minute' ? '' : seconds,
      unit === 1 ? `${decimal}${pad(local.getUTCMilliseconds(), 3)}${fraction}` : '',
      zone
        .replace('+', ahead < 0 ? '-' : '+')
        .replace('hh', pad(Math.trunc(Math.abs(ahead) / 60)))
        .replace('mm', pad(Math.abs(ahead) % 60)),
    ]
    return { instant, written: `${day}${basic && separator === ' ' ? 'T' : separator}${parts.join('')}` }
  })

describe('an instant as text', () => {
  test('every form of ISO 8601 is read, in UTC when it has no zone', () => {
    fc.assert(
      fc.property(spelled, ({ instant, written }) => {
        expect(canonicalInstant(written), written).toBe(new Date(instant).toISOString())
      }),
      { numRuns: runs(2000) },
    )
  })

  test('the form of the warehouse is unchanged', () => {
    fc.assert(
      fc.property(fc.date({ min: new Date(0), max: new Date('9999-12-31'), noInvalidDate: true }), date => {
        expect(canonicalInstant(date.toISOString())).toBe(date.toISOString())
      }),
    )
  })

  test.each([
    ['2016-12-31T23:59:60Z', '2016-12-31T23:59:59.999Z'],
    ['2017-01-01T08:59:60.5+09:00', '2016-12-31T23:59:59.999Z'],
    ['2026-03-04T24:00Z', '2026-03-05T00:00:00.000Z'],
    ['2026-12-31T24:00:00-01:00', '2027-01-01T01:00:00.000Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
    ['2024-02-29T12:00', '2024-02-29T12:00:00.000Z'],
  ])('%s is read as %s', (written, instant) => {
    expect(canonicalInstant(written)).toBe(instant)
  })

  test.each([
    '',
    '2026-03-04',
    '20260304',
    '2026-02-29T12:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-00-10T00:00:00Z',
    '2026-03-00T00:00:00Z',
    '2026-03-04T25:00:00Z',
    '2026-03-04T24:00:01Z',
    '2026-03-04T12:60:00Z',
    '2026-03-04T12:00:61Z',
    '2026-03-04T12:00:00+24:00',
    '2026-03-04T12:00:00+01:60',
    '2026-03-04T12Z',
    '2026-03-04T1200Z',
    '20260304T12:00Z',
    '2026-W10-3T12:00:00Z',
    '+002026-03-04T12:00:00Z',
    '9999-12-31T23:59:59-01:00',
    '0000-01-01T00:00:00+01:00',
    ' 2026-03-04T12:00:00Z',
    '2026-03-04T12:00:00Z\n',
    'yesterday',
  ])('%j is not an instant', written => {
    expect(canonicalInstant(written)).toBeUndefined()
  })

  test('every instant is on a day of the calendar', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9999 }), fc.nat(13), fc.nat(32), (year, month, day) => {
        const written = `${pad(year, 4)}-${pad(month)}-${pad(day)}`
        const date = new Date(`${written}T00:00:00.000Z`)
        expect(isDay(written)).toBe(!Number.isNaN(date.getTime()) && date.toISOString().startsWith(written))
      }),
      { numRuns: runs(2000) },
    )
  })
})

describe('a timestamp in a payload', () => {
  const parse = compileParser(
    entity('things', {
      about: 'For the test.',
      key: ['id'],
      columns: { id: text('Its id.'), at: timestamp('When.') },
    }),
  )
  const read = (at: unknown) => {
    const row = parse({ id: 'a', at }, { drift: () => undefined, reject: () => undefined })
    return { cell: row?.cells[1], extra: row?.extra }
  }

  test.each([
    ['without a zone', '2026-03-04T05:06', '2026-03-04T05:06:00.000Z', null],
    ['in a leap second', '2016-12-31T23:59:60Z', '2016-12-31T23:59:59.999Z', '2016-12-31T23:59:60Z'],
    ['that is a day', '2026-03-04', '2026-03-04T00:00:00.000Z', '2026-03-04'],
    ['that is no instant', 'soon', null, 'soon'],
  ])('a timestamp %s has a time when possible, and loses nothing', (_, sent, cell, kept) => {
    const { cell: stored, extra } = read(sent)
    expect(stored).toBe(cell)
    expect(extra === null ? null : JSON.parse(extra ?? '').at).toBe(kept)
  })
})
