import { describe, expect, test } from 'vitest'
import {
  type CoverageFigures,
  coverageGrid,
  EARLIER,
  LATER,
  type MonthFigures,
} from '../../src/store/status/coverage.ts'

const NOW = '2026-03'

const month = (name: string, figures: Partial<MonthFigures> = {}): MonthFigures => ({
  month: name,
  rows: 1,
  missing: 0,
  unread: 0,
  suspected: 0,
  ...figures,
})

const messages = (figures: Partial<CoverageFigures>): CoverageFigures => ({
  resource: 'messages',
  months: [],
  unread: [],
  isUnknown: false,
  ...figures,
})

const statesOf = (figures: Partial<CoverageFigures>) => {
  const { rows } = coverageGrid([messages(figures)], NOW)
  return Object.fromEntries(rows[0]?.cells.map(({ month: name, state }) => [name, state]) ?? [])
}

describe('the months of the coverage', () => {
  test('months run without a gap from the oldest row of any resource to this month', () => {
    const grid = coverageGrid(
      [
        messages({ months: [month('2025-12')] }),
        messages({ resource: 'activities', months: [month('2026-02')] }),
      ],
      NOW,
    )
    expect(grid.months).toEqual(['2025-12', '2026-01', '2026-02', '2026-03'])
    expect(grid.rows.map(({ cells }) => cells.map(({ rows }) => rows))).toEqual([
      [1, 0, 0, 0],
      [0, 0, 1, 0],
    ])
  })

  test('an empty warehouse shows this month alone', () => {
    expect(coverageGrid([messages({})], NOW).months).toEqual([NOW])
  })

  test('rows without a time, with an unreadable time, or older than ten years share the first cell', () => {
    const months = ['', 'garbage', '1999-01', '2026-13', '2016-03', '2016-04'].map(name => month(name))
    const grid = coverageGrid([messages({ months })], NOW)
    expect(grid.months).toHaveLength(121)
    expect(grid.months.slice(0, 2)).toEqual([EARLIER, '2016-04'])
    expect(grid.rows[0]?.cells.slice(0, 2).map(({ rows }) => rows)).toEqual([5, 1])
  })

  test('rows after this month share the last cell', () => {
    const grid = coverageGrid([messages({ months: [month('2026-04'), month('9999-01')] })], NOW)
    expect(grid.months).toEqual([NOW, LATER])
    expect(grid.rows[0]?.cells[1]).toMatchObject({ rows: 2, state: 'complete' })
  })
})

describe('the state of a month', () => {
  test('a month is complete with rows and empty without', () => {
    expect(statesOf({ months: [month('2026-01')] })).toEqual({
      '2026-01': 'complete',
      '2026-02': 'empty',
      '2026-03': 'empty',
    })
  })

  test('a month is being read while a span that touches it was never read to its end', () => {
    const unread = [{ from: '2026-01-15T00:00:00.000Z', to: '2026-02-01T00:00:00.000Z' }]
    expect(statesOf({ months: [month('2025-12')], unread })).toEqual({
      '2025-12': 'complete',
      '2026-01': 'reading',
      '2026-02': 'empty',
      '2026-03': 'empty',
    })
  })

  test('a span without a start reaches back to the earliest rows, and one without an end to the future', () => {
    const months = [month(''), month('2026-02'), month('2027-01')]
    expect(statesOf({ months, unread: [{ from: null, to: '2026-03-01T00:00:00.000Z' }] })).toEqual({
      [EARLIER]: 'reading',
      '2026-02': 'reading',
      '2026-03': 'empty',
      [LATER]: 'complete',
    })
    expect(statesOf({ months, unread: [{ from: '2026-03-01T00:00:00.000Z', to: null }] })).toEqual({
      [EARLIER]: 'complete',
      '2026-02': 'complete',
      '2026-03': 'reading',
      [LATER]: 'reading',
    })
  })

  test('a suspicion comes before a read in progress, and that before missing texts', () => {
    const worst = { missing: 1, unread: 1, suspected: 1 }
    expect(statesOf({ months: [month(NOW, worst)] })).toEqual({ [NOW]: 'suspected' })
    expect(statesOf({ months: [month(NOW, { ...worst, suspected: 0 })] })).toEqual({ [NOW]: 'reading' })
    expect(statesOf({ months: [month(NOW, { missing: 1 })] })).toEqual({ [NOW]: 'texts-missing' })
  })

  test('a month without rows counts as being read until a resource without spans is complete', () => {
    expect(statesOf({ isUnknown: true, months: [month('2026-02')] })).toEqual({
      '2026-02': 'complete',
      '2026-03': 'reading',
    })
  })
})
