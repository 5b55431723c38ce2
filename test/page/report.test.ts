import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readReport } from '../../src/report/read-report.ts'
import { reportHtml } from '../../src/report/report-html.ts'
import { REPORT_POLICY } from '../../src/report/style.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { backfilled, type Test } from '../cli/workspace.ts'
import { start } from '../server/status-server.ts'
import { type Look, open, overflow, screenshot, startBrowser, violations } from './browser.ts'

let browser: Browser

beforeAll(async () => {
  browser = await startBrowser()
})

afterAll(() => browser.close())

const TOKEN = 'a-token-of-the-status-server'
const LOOKS = (['light', 'dark'] as const).flatMap(colorScheme =>
  [320, 1280].map(width => ({ colorScheme, width })),
)

/** The report of a made-up workspace in a browser, as the status server sends it. */
async function openReport(context: Test, look: Look = {}) {
  const { file } = await backfilled(context, { messages: 1500, meetings: 120, deals: 60, realistic: true })
  const db = openSqlite(file, { readonly: true })
  const html = reportHtml(readReport(db, Date.now()))
  db.close()
  const { server } = await start({ token: TOKEN, report: { html: async () => html, policy: REPORT_POLICY } })
  return open(context, browser, `${server.url}report`, { token: TOKEN, ...look })
}

test('the report is readable and accessible in every look, and its policy allows all that it needs', async context => {
  const { page, complaints } = await openReport(context)
  expect(await page.locator('h2').allTextContents()).toHaveLength(6)
  expect(await page.locator('figure svg.chart').count()).toBeGreaterThanOrEqual(6)
  for (const { colorScheme, width } of LOOKS) {
    await page.emulateMedia({ colorScheme })
    await page.setViewportSize({ width, height: 900 })
    await screenshot(page, `report-${colorScheme}-${width}`)
    expect(await overflow(page), `${width} pixels`).toBe(0)
    expect(await violations(page), `${colorScheme}, ${width} pixels`).toEqual([])
  }
  expect(complaints).toEqual([])
})

test('a printed report is dark on white, with its tables in full', async context => {
  const { page } = await openReport(context, { colorScheme: 'dark' })
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' })
  const style = (selector: string, property: string) =>
    page.evaluate<string>(`getComputedStyle(document.querySelector('${selector}')).${property}`)
  expect([await style('h1', 'color'), await style('html', 'colorScheme')]).toEqual([
    'rgb(27, 31, 36)',
    'light',
  ])
  expect(await style('.scroll', 'maxHeight')).toBe('none')
  await screenshot(page, 'report-print')
})
