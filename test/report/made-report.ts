import type { ReportFigures, ReportSection } from '../../src/report/read-report.ts'
import type { ReportRow } from '../../src/report/sections.ts'

/** A section with the answer of a shipped question. */
export function madeSection(
  question: string,
  rows: readonly ReportRow[],
  more: Partial<ReportSection> = {},
): ReportSection {
  return {
    question,
    asks: 'What is asked?',
    title: 'A title',
    sentence: null,
    missing: null,
    notes: [],
    columns: Object.keys(rows[0] ?? {}),
    rows,
    sql: 'SELECT 1',
    ...more,
  }
}

export function madeReport(
  sections: readonly ReportSection[],
  more: Partial<ReportFigures> = {},
): ReportFigures {
  return {
    workspace: 'acme',
    made_at: '2026-03-04T12:00:00.000Z',
    complete_as_of: '2026-03-04T11:00:00.000Z',
    completeness: 'The data are complete as of 2026-03-04T11:00:00.000Z.',
    time_zone: 'Asia/Tokyo',
    tables: { state: 'up to date', waiting: 0, notes: [] },
    guesses: [],
    sections,
    ...more,
  }
}
