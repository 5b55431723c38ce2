import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, test } from 'vitest'
import { until } from '../support/until.ts'
import { open, overflow, screenshot, startBrowser, violations } from './browser.ts'
import { inState, PAGE_STATES } from './states.ts'

let browser: Browser

beforeAll(async () => {
  browser = await startBrowser()
})

afterAll(() => browser.close())

const LOOKS = (['light', 'dark'] as const).flatMap(colorScheme =>
  [320, 1280, 3840].map(width => ({ colorScheme, width })),
)

test.concurrent.for(PAGE_STATES)(
  'in the state $name the page says to everyone what is the matter and what to do',
  async (state, context) => {
    const { expect } = context
    const { url } = await inState(context, state)
    const { page, complaints } = await open(context, browser, url)
    const verdict = () => page.locator('h1').textContent()
    expect(await until(verdict, text => state.verdict.test(text ?? ''))).toMatch(state.verdict)
    if (state.todo) expect(await page.locator('#verdict').textContent()).toMatch(state.todo)
    expect(complaints).toEqual([])
    for (const { colorScheme, width } of LOOKS) {
      await page.emulateMedia({ colorScheme })
      await page.setViewportSize({ width, height: 900 })
      await screenshot(page, `${state.name}-${colorScheme}-${width}`)
      expect(await overflow(page), `${width} pixels`).toBe(0)
      expect(await violations(page), `${colorScheme}, ${width} pixels`).toEqual([])
    }
  },
)
