import { describe, expect, test } from 'vitest'
import { isReport, reportHtml } from '../../src/report/report-html.ts'
import type { ReportRow } from '../../src/report/sections.ts'
import { DARK, LIGHT, STYLE } from '../../src/report/style.ts'
import { madeReport, madeSection } from './made-report.ts'

const HOSTILE = `<script>alert("1")</script>'&`
const stage = (more: ReportRow = {}): ReportRow => ({
  ...{ pipeline: 'Sales', stage: 'Talk', currency: 'EUR', deals: 2, amount: 1234567, ...more },
})
const silent = (deal: string, days: number | null): ReportRow => ({ deal, days_silent: days })
const pipeline = (...rows: readonly ReportRow[]) =>
  reportHtml(madeReport([madeSection('open-deals-by-stage', rows)]))
const figures = (html: string) => html.match(/<figure>/g)?.length ?? 0

describe('the report', () => {
  test('a name from the workspace is text wherever it stands', () => {
    const html = reportHtml(
      madeReport(
        [
          madeSection('deals-without-activity', [silent(HOSTILE, 20)], { sentence: HOSTILE, sql: HOSTILE }),
          madeSection('open-deals-by-stage', [stage({ pipeline: HOSTILE, currency: HOSTILE })]),
          madeSection('activity-by-team-and-week', [{ team: HOSTILE, week: HOSTILE, mails: 1, meetings: 0 }]),
          madeSection('crm-quality', [], { missing: HOSTILE, notes: [HOSTILE] }),
        ],
        {
          workspace: HOSTILE,
          time_zone: HOSTILE,
          tables: { state: 'behind', waiting: 1, notes: [HOSTILE] },
          guesses: [{ name: HOSTILE, value: HOSTILE, why: HOSTILE }],
        },
      ),
    )
    expect(html).not.toContain('<script')
    expect(html).not.toContain('alert("')
    expect(html).not.toContain("'&")
    expect(html).toContain('&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;')
  })

  test('it loads nothing, and its style is as it is written', () => {
    const html = pipeline(stage())
    expect(html).toContain(`<style>${STYLE}</style>`)
    expect(html).not.toMatch(/\b(src|srcset|action)=|url\(|@import|style="|https?:/)
    expect([...html.matchAll(/href="(.)/g)].map(([, first]) => first)).toEqual(['#'])
  })

  test('the top says as of when the data are complete, when it was made, and in which zone days are', () => {
    const html = pipeline()
    expect(html).toContain('2026-03-04 11:00:00</time> UTC')
    expect(html).toContain('2026-03-04 12:00:00</time> UTC')
    expect(html).toContain('those of <bdi>Asia/Tokyo</bdi>')
    expect(
      reportHtml(madeReport([], { complete_as_of: null, completeness: 'The data are not complete yet: …' })),
    ).toContain('The data are not complete yet')
  })

  test('guesses are folded, each with its reason', () => {
    const guesses = [{ name: 'crm.deal.amount', value: 'acv', why: 'acv looks like it.' }]
    expect(reportHtml(madeReport([], { guesses }))).toMatch(/<summary>1 guess,.*acv looks like it\./s)
    expect(reportHtml(madeReport([]))).not.toContain('<details>')
  })

  test('tables for reports that are late or missing are a warning at the top', () => {
    const late = madeReport([], { tables: { state: 'behind', waiting: 7, notes: ['7 changes wait.'] } })
    expect(reportHtml(late)).toContain('<ul class="notes"><li><bdi>7 changes wait.</bdi></li></ul>')
    expect(reportHtml(madeReport([]))).toContain('up to date')
  })

  test('a question without rows has its sentence and its SQL, and neither a chart nor a table', () => {
    const html = reportHtml(madeReport([madeSection('crm-quality', [], { sentence: 'No deal is open.' })]))
    expect(html).toContain('No deal is open.')
    expect(html).toContain('<pre tabindex="0"><code>SELECT 1</code></pre>')
    expect(html).not.toMatch(/<figure|<table/)
  })

  test('a question that could not be answered says what to do', () => {
    const html = reportHtml(madeReport([madeSection('crm-quality', [], { missing: 'Run parley backfill.' })]))
    expect(html).toContain('<p class="warn"><bdi>Run parley backfill.</bdi></p>')
  })

  test('each currency has a chart of its amounts', () => {
    const html = pipeline(
      stage(),
      stage({ currency: 'JPY' }),
      stage({ stage: 'Offer' }),
      stage({ currency: null }),
    )
    expect([...html.matchAll(/<figcaption><bdi>([^<]*)/g)].map(([, caption]) => caption)).toEqual([
      'Amount of open deals by stage, EUR',
      'Amount of open deals by stage, JPY',
      'Amount of open deals by stage, no currency',
    ])
  })

  test('a stage of which no deal is open is in the table, and not in the chart', () => {
    const html = pipeline(stage({ deals: 0, amount: null, stage: 'Idea' }))
    expect(html).toContain('<bdi>Idea</bdi>')
    expect(figures(html)).toBe(0)
  })

  test('a chart has the first fifteen bars and says of how many', () => {
    const rows = Array.from({ length: 20 }, (_, place) => silent(`Deal ${place}`, 40 - place))
    const html = reportHtml(madeReport([madeSection('deals-without-activity', rows)]))
    expect(html).toContain('(the first 15 of 20)')
    expect(html.match(/class="track"/g)).toHaveLength(15)
  })

  test('a long table is cut, and says so', () => {
    const rows = Array.from({ length: 120 }, (_, place) => silent(`Deal ${place}`, null))
    const html = reportHtml(madeReport([madeSection('deals-without-activity', rows)]))
    expect(html).toContain('the first 100 of 120 rows')
    expect(html.match(/<tr><td/g)).toHaveLength(100)
  })

  test('what is not known is a dash, a flag is a word, and ids are left out', () => {
    const row = { deal: 'Big', deal_id: 'd1', owner: null, is_late: 1, amount: 1234.56 }
    const other = { deal: 'Small', deal_id: 'd2', owner: 'Kim', is_late: 0, amount: null }
    const html = reportHtml(madeReport([madeSection('deals-without-activity', [row, other])]))
    expect(html).toContain('<td><span class="pale">–</span></td><td>yes</td><td class="number">1,235</td>')
    expect(html).not.toMatch(/deal id|d1/)
  })

  test('a chart has a title and a description', () => {
    expect(pipeline(stage())).toMatch(
      /aria-labelledby="(\S+)-title \1-desc"[^>]*>\n<title id="\1-title">Amount.*<\/title>\n<desc id="\1-desc">Sales \/ Talk \(2 deals\): 1,234,567<\/desc>/,
    )
  })

  test('another HTML file is no report', () => {
    expect([isReport(pipeline()), isReport('<title>parley report</title>')]).toEqual([true, false])
  })
})

const months = (...values: readonly (number | null)[]) =>
  values.map((value, place) => ({
    month: `2026-0${place + 1}`,
    ours_percent: value,
    theirs_percent: 40,
    other_percent: 0,
  }))
const talk = (rows: readonly ReportRow[]) =>
  reportHtml(madeReport([madeSection('talk-ratio-by-month', rows)]))

describe('the lines of a chart', () => {
  test('a line has a gap where there is no value', () => {
    const lines = (html: string) => [...html.matchAll(/<polyline class="l0"/g)].length
    expect([lines(talk(months(50, 60, 50, 70))), lines(talk(months(50, 60, null, 50, 70)))]).toEqual([1, 2])
  })

  test('a single month is a point', () => {
    const html = talk(months(50))
    expect(html).not.toContain('<polyline')
    expect(html).toContain('<title>our side, 2026-01: 50 %</title>')
  })

  test('one of something has its unit in the singular', () => {
    const rows = [1, 2].map(mails => ({ team: `T${mails}`, week: '2026-03-02', mails, meetings: 1 }))
    const html = reportHtml(madeReport([madeSection('activity-by-team-and-week', rows)]))
    for (const text of ['T1, 2026-03-02: 1 e-mail', 'T2, 2026-03-02: 2 e-mails', 'T1, 2026-03-02: 1 meeting'])
      expect(html).toContain(`<title>${text}</title>`)
    expect(html).not.toMatch(/\b1 (e-mails|meetings)/)
  })

  test('the smallest of more than six teams are one line', () => {
    const rows = Array.from({ length: 9 }, (_, place) => ({
      team: `T${place}`,
      week: '2026-03-02',
      mails: place,
      meetings: 0,
    }))
    const html = reportHtml(madeReport([madeSection('activity-by-team-and-week', rows)]))
    expect(html).toContain('<title>T8, 2026-03-02: 8 e-mails</title>')
    expect(html).toContain('<title>4 others, 2026-03-02: 6 e-mails</title>')
    expect(html).not.toContain('<title>T3, 2026-03-02: 3 e-mails')
  })

  test.each([
    [0, '1 %'],
    [7, '8 %'],
    [23, '30 %'],
    [100, '100 %'],
    [101, '200 %'],
    [9100, '10,000 %'],
  ])('the axis for %d ends at %s', (value, top) => {
    const row = { month: '2026-01', ours_percent: value, theirs_percent: null, other_percent: null }
    expect(talk([row])).toContain(`>${top}</text>`)
  })
})

const channel = (part: string) => {
  const value = Number.parseInt(part, 16) / 255
  return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
}
const luminance = (colour: string) => {
  const [red = 0, green = 0, blue = 0] = (colour.match(/[0-9a-f]{2}/g) ?? []).map(channel)
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}
const contrast = (one: string, other: string) => {
  const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a)
  return ((high ?? 0) + 0.05) / ((low ?? 0) + 0.05)
}

describe.each([
  ['light', LIGHT],
  ['dark', DARK],
])('in %s mode', (_, colours) => {
  test('bars and lines have a contrast of at least 3:1, and letters of 4.5:1', () => {
    const { card, page, text, pale, warn, c0, c1, c2, c3, c4, c5 } = colours
    for (const colour of [c0, c1, c2, c3, c4, c5]) expect(contrast(colour, card), colour).toBeGreaterThan(3)
    for (const background of [card, page])
      for (const colour of [text, pale, warn, c0])
        expect(contrast(colour, background), colour).toBeGreaterThan(4.5)
  })
})
