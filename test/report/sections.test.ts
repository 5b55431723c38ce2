import { describe, expect, test } from 'vitest'
import { readQuestions } from '../../src/dictionary/questions.ts'
import { type ChartPlan, REPORT_SECTIONS } from '../../src/report/sections.ts'
import { temporaryStore } from '../store/temporary-store.ts'

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
      expect(section.headline([])).toMatch(/\.$/)
      for (const note of section.notes)
        expect('sql' in note ? db.prepare(note.sql).pluck().get() : note.count([])).toBeTypeOf('number')
    })

    test('its notes are sentences for one and for many', () => {
      for (const { says } of section.notes)
        for (const count of [1, 1200]) expect(says(count, 2000)).toMatch(/^([A-Z]|[\d,]+ ).*\.$/)
    })
  },
)
