import { createInterface } from 'node:readline'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { startParley } from '../cli/parley.ts'
import { placeFor, workspace } from '../cli/workspace.ts'
import { hostilePage } from '../server/made-page.ts'
import { start } from '../server/status-server.ts'
import { until } from '../support/until.ts'
import { open, overflow, screenshot, startBrowser, violations } from './browser.ts'
import { inState, type PageState } from './states.ts'

let browser: Browser

beforeAll(async () => {
  browser = await startBrowser()
})

afterAll(() => browser.close())

const textOf = (page: Page, selector: string) => async () =>
  (await page.locator(selector).allTextContents()).join()

const TABLE = `document.querySelector('#coverage details .scroll')`

const titleOf = (page: Page) => () => page.title()

/** A small workspace that was just read, in which the daemon only waits for news. */
const READ: PageState = {
  name: 'read',
  bring: async () => undefined,
  verdict: /^Up to date/,
  todo: undefined,
}

describe.concurrent('a page that stays open', () => {
  test('the page follows a backfill to its end, and then says that no process answers', async context => {
    const { expect } = context
    const simulator = await workspace(context, {
      messages: 1000,
      tidy: true,
      now: 'real',
      limit: MINUTES_LONG,
    })
    const { cwd, env } = placeFor(simulator)
    const run = startParley(['backfill', '--page', '--listen', '127.0.0.1:0'], { cwd, env })
    context.onTestFinished(async () => {
      run.child.kill('SIGKILL')
      await run.ended
    })
    const { page } = await open(context, browser, await pageAddress(run))
    const verdict = textOf(page, 'h1')
    expect(await verdict()).toMatch(/^Loading history/)
    const shares = new Set<string | null>()
    const share = page.locator('#verdict progress')
    const seen = async () => shares.add(await share.getAttribute('value')).size
    expect(await until(seen, size => size > 1)).toBe(2)
    simulator.setLimit({ kind: 'none' })
    expect((await run.ended).status).toBe(0)
    expect(await until(titleOf(page), title => title === 'No answer – parley')).toBe('No answer – parley')
    expect(await page.locator('#silence h1').textContent()).toMatch(
      /^parley has not answered since [\d:]+ UTC$/,
    )
    expect(await page.locator('#verdict').isVisible()).toBe(false)
    await screenshot(page, 'no-answer-light-1280')
    expect(await violations(page)).toEqual([])
  })

  test('the page shows an outage of the API, and its end', async context => {
    const { expect } = context
    const { simulator, url } = await inState(context, READ)
    const { page, complaints } = await open(context, browser, url)
    const title = titleOf(page)
    expect(await until(title, now => now.startsWith('Up to date'))).toMatch(/^Up to date/)
    simulator.setFaults([{ kind: 'status', status: 503 }])
    expect(await until(title, now => now.startsWith('Waiting'))).toMatch(/^Waiting/)
    simulator.setFaults([])
    expect(await until(title, now => now.startsWith('Up to date'))).toMatch(/^Up to date/)
    expect(complaints).toEqual([])
  })

  test('an open table, the focus and the scroll position outlast an update', async context => {
    const { expect } = context
    const { simulator, url } = await inState(context, READ)
    const { page } = await open(context, browser, url, { width: 320 })
    await until(titleOf(page), now => now.startsWith('Up to date'))
    const summary = page.locator('#coverage summary')
    await summary.press('Enter')
    const table = page.locator('#coverage details .scroll')
    await page.evaluate(`${TABLE}.scrollTo(100, 20)`)
    const rows = textOf(page, '#coverage td')
    const before = await rows()
    simulator.apply({ kind: 'publish', resource: 'messages', count: 3 })
    expect(await until(rows, now => now !== before)).not.toBe(before)
    expect(await table.isVisible()).toBe(true)
    expect(await page.evaluate(`[${TABLE}.scrollLeft, ${TABLE}.scrollTop]`)).toEqual([100, 20])
    expect(await page.evaluate('document.activeElement.matches("#coverage summary")')).toBe(true)
  })
})

describe.concurrent('the page for everyone', () => {
  test('arrow keys move through the heat map, and each cell is named', async context => {
    const { expect } = context
    const { url } = await inState(context, READ)
    const { page } = await open(context, browser, url)
    await until(titleOf(page), now => now.startsWith('Up to date'))
    const cell = page.locator('#cell')
    await page.locator('.heat use').first().focus()
    expect(await cell.textContent()).toMatch(/^collections, (earlier|\d{4}-\d\d), nothing there$/)
    await page.keyboard.press('ArrowDown')
    const below = await cell.textContent()
    expect(below).toMatch(/^activities, (earlier|\d{4}-\d\d), /)
    await page.keyboard.press('ArrowRight')
    expect(await cell.textContent()).toMatch(/^activities, \d{4}-\d\d, /)
    await page.keyboard.press('ArrowLeft')
    expect(await cell.textContent()).toBe(below)
    await page.locator('.heat g').nth(2).locator('use').last().click()
    expect(await cell.textContent()).toMatch(/^messages, \d{4}-\d\d, /)
  })

  test('every section and every table can be read without JavaScript', async context => {
    const { expect } = context
    const { url } = await inState(context, READ)
    const withJavaScript = await open(context, browser, url)
    await until(titleOf(withJavaScript.page), now => now.startsWith('Up to date'))
    const { page, complaints } = await open(context, browser, url, { javaScriptEnabled: false })
    const headings = await page.locator('h2').allTextContents()
    expect(headings).toEqual(['Resources', 'Coverage by month', 'Requests', 'Today', 'The file'])
    await page.locator('#coverage summary').click()
    expect(await page.locator('#coverage tbody tr').first().isVisible()).toBe(true)
    expect(await page.locator('footer').textContent()).toContain('Reload the page to update it.')
    expect(complaints).toEqual([])
  })

  test('nothing on the page moves by itself', async context => {
    const { expect } = context
    const { url } = await inState(context, READ)
    const { page } = await open(context, browser, url, { reducedMotion: 'reduce' })
    expect(await page.evaluate('document.getAnimations().length')).toBe(0)
  })

  test('a page with a token opens after the token was given, and updates itself', async context => {
    const { expect } = context
    const token = 'a-token-of-twenty-characters'
    const { url } = await inState(context, { ...READ, env: { PARLEY_HTTP_TOKEN: token } })
    const { page, complaints } = await open(context, browser, url, { token })
    expect(await until(titleOf(page), now => now.startsWith('Up to date'))).toMatch(/^Up to date/)
    expect(complaints).toEqual([])
    const stranger = await browser.newContext()
    context.onTestFinished(() => stranger.close())
    expect((await stranger.request.get(url)).status()).toBe(401)
  })
})

describe.concurrent('hostile names', () => {
  test.for([
    { kind: 'a script', name: '<script>document.title="owned"</script>' },
    { kind: 'an event handler', name: '"><img src=x onerror=document.title="owned">' },
    { kind: '10,000 characters', name: 'x'.repeat(10_000) },
    { kind: 'text from right to left', name: '\u202Eright to left \u05D0\u05D1\u05D2' },
  ])('a name with $kind is shown as text and does not widen the page', async ({ kind, name }, context) => {
    const { expect } = context
    const html = hostilePage(name)
    const { server } = await start({ page: async () => ({ status: 200, html }) })
    const { page, complaints } = await open(context, browser, server.url ?? '')
    expect(await page.locator('h1').textContent()).toBe(name)
    expect(await page.locator('#today li').allTextContents()).toContain(`meetings.${name}: unknown field`)
    for (const width of [320, 1280]) {
      await page.setViewportSize({ width, height: 900 })
      await screenshot(page, `hostile-${kind.replaceAll(' ', '-')}-${width}`)
      expect(await overflow(page), `${width} pixels`).toBe(0)
    }
    expect(await violations(page)).toEqual([])
    expect(await page.title()).not.toBe('owned')
    expect(complaints).toEqual([])
  })
})

/** No machine is so busy that a backfill under it ends before the page was seen twice. */
const MINUTES_LONG = { kind: 'token-bucket', rate: 10, burst: 10 } as const

/** The address that the log of a backfill names. */
function pageAddress({ child }: ReturnType<typeof startParley>): Promise<string> {
  return new Promise(resolve => {
    if (child.stderr === null) return
    createInterface({ input: child.stderr }).on('line', line => {
      if (!line.startsWith('{')) return
      const { msg, address } = JSON.parse(line)
      if (msg === 'The status server listens') resolve(`http://${address}/`)
    })
  })
}
