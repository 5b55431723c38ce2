import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { until } from '../support/until.ts'
import { open, overflow, screenshot, startBrowser, violations } from './browser.ts'
import { inState, PAGE_STATES } from './states.ts'

let browser: Browser

beforeAll(async () => {
  browser = await startBrowser()
})

afterAll(() => browser.close())

const WIDTHS = [320, 1280, 3840]

describe.each(PAGE_STATES)('the page in the state $name', state => {
  test('the page says what is the matter and what to do, to everyone', async context => {
    const { url } = await inState(context, state)
    const { page, complaints } = await open(context, browser, url)
    const verdict = () => page.locator('h1').textContent()
    expect(await until(verdict, text => state.verdict.test(text ?? ''))).toMatch(state.verdict)
    const banner = await page.locator('#verdict').textContent()
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 900 })
        await screenshot(page, `${state.name}-${colorScheme}-${width}`)
        expect(await overflow(page), `${width} pixels`).toBe(0)
        expect(await violations(page), `${colorScheme}, ${width} pixels`).toEqual([])
      }
    }
    if (state.todo) expect(banner).toMatch(state.todo)
    expect(complaints).toEqual([])
  })
})
