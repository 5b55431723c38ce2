import { describe, expect, test } from 'vitest'
import { readQuestions } from '../../src/dictionary/questions.ts'
import {
  type ChartPlan,
  REPORT_SECTIONS,
  type ReportFacts,
  type ReportRow,
} from '../../src/report/sections.ts'
import { temporaryStore } from '../store/temporary-store.ts'

const FACTS: ReportFacts = { hasDeals: true, currency: null, since: null }
const QUESTIONS = new Map(readQuestions().map(({ name, sql }) => [name, sql]))

/** The columns that a chart draws. */
function drawnColumns(plan: ChartPlan): (string | undefined)[] {
  if (plan.kind === 'bars')
    return [...plan.label, plan.panel, ...Object.keys(plan.parts), plan.whole?.column].filter(
      column => column !== undefined,
    )
  return plan.series === undefined ? [plan.x, ...Object.keys(plan.names)] : [plan.x, plan.series, plan.value]
}

describe.each(REPORT_SECTIONS.map(section => [section.question, section] as const))(
  'the section of %s',
  (name, section) => {
    const sql = QUESTIONS.get(name) ?? ''

    test('it draws columns that its shipped question has', () => {
      const { db } = temporaryStore()
      const columns = db
        .prepare(sql)
        .columns()
        .map(column => column.name)
      expect(columns).toEqual(expect.arrayContaining(section.charts.flatMap(drawnColumns)))
    })

    test('without rows it has a sentence, and notes whose SQL runs', () => {
      const { db } = temporaryStore()
      expect(section.headline([], FACTS)).toMatch(/\.$/)
      for (const note of section.notes)
        expect('sql' in note ? db.prepare(note.sql).pluck().get() : note.count([])).toBeTypeOf('number')
    })

    test('its notes are sentences for one and for many', () => {
      for (const { says } of section.notes)
        for (const count of [1, 1200]) expect(says(count, 2000, FACTS)).toMatch(/^([A-Z]|[\d,]+ ).*\.$/)
    })
  },
)

function sectionOf(question: string) {
  const section = REPORT_SECTIONS.find(each => each.question === question)
  if (section === undefined) throw new Error(question)
  return section
}

describe('what a section does not know', () => {
  const headline = (rows: readonly ReportRow[], facts: Partial<ReportFacts>) =>
    sectionOf('open-deals-by-stage').headline(rows, { ...FACTS, ...facts })

  test('amounts are called converted only where they have a currency and reports have one', () => {
    const row = { deals: 2, amount: 300, amount_reporting: 300 }
    expect([
      headline([{ ...row, currency: null }], { currency: 'EUR' }),
      headline([{ ...row, currency: 'USD' }], {}),
      headline([{ ...row, currency: 'USD', amount_reporting: 270 }], { currency: 'EUR' }),
    ]).toEqual([
      '2 deals are open: 300 without a currency.',
      '2 deals are open: 300 USD.',
      '2 deals are open: 300 USD. Converted, these are 270 in EUR.',
    ])
  })

  test('without an object of deals no section says that none is open or silent', () => {
    const facts = { ...FACTS, hasDeals: false }
    for (const question of ['open-deals-by-stage', 'deals-without-activity', 'crm-quality'])
      expect(sectionOf(question).headline([], facts)).toBe('There are no deals.')
  })

  test('deals without a conversation are said to have none here, and what sync.since leaves out', () => {
    const [note] = sectionOf('deals-without-activity').notes
    expect(note?.says(1, 0, FACTS)).toBe('1 of these deals has no e-mail and no meeting here.')
    expect(note?.says(33, 0, { ...FACTS, since: '2026-06-01T00:00:00.000Z' })).toBe(
      '33 of these deals have no e-mail and no meeting here, where items from before 2026-06-01 (sync.since) are left out.',
    )
  })
})
