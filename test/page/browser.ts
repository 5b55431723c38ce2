import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { AxeResults } from 'axe-core'
import { type Browser, chromium, type Page } from 'playwright-core'
import type { Test } from '../cli/workspace.ts'

/** Debian's Chromium, and what a test asks of a page in it. */

const CHROMIUM = process.env['PARLEY_CHROMIUM'] ?? '/usr/bin/chromium'

/** Pictures of the states, for people to look at. */
export const SCREENSHOTS = new URL('screenshots/', import.meta.url).pathname

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

export interface Look {
  colorScheme?: 'light' | 'dark'
  /** In CSS pixels. Default 1280. */
  width?: number
  /** Default true. */
  javaScriptEnabled?: boolean
  reducedMotion?: 'reduce' | 'no-preference'
  /** For `http.token`. */
  token?: string
}

export interface OpenPage {
  page: Page
  /** Messages of the console of the kinds error and warning, and uncaught errors. A CSP violation is an error. */
  complaints: string[]
}

export async function startBrowser(): Promise<Browser> {
  // Without a sandbox, since tests may run as root in a container. Only pages of this machine are opened.
  return chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
}

/** Opens a page, which is closed when the test ends. */
export async function open(test: Test, browser: Browser, url: string, look: Look = {}): Promise<OpenPage> {
  const { width = 1280, token, ...options } = look
  const context = await browser.newContext({
    viewport: { width, height: 900 },
    ...options,
    ...(token !== undefined && { httpCredentials: { username: 'someone', password: token } }),
  })
  test.onTestFinished(() => context.close())
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', message => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
  })
  page.on('pageerror', error => complaints.push(String(error)))
  await page.goto(url)
  return { page, complaints }
}

/** Violations of accessibility rules, each with the elements that violate it. */
export async function violations(page: Page): Promise<string[]> {
  // Run by the debugger of the browser, which the policy of the page does not bind.
  await page.evaluate(axeSource)
  const { violations: found } = await page.evaluate<AxeResults>('axe.run()')
  return found.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' | ')}`)
}

/** How far the page is wider than the window, in CSS pixels. */
export function overflow(page: Page): Promise<number> {
  return page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth')
}

export async function screenshot(page: Page, name: string): Promise<void> {
  mkdirSync(SCREENSHOTS, { recursive: true })
  await page.screenshot({ path: `${SCREENSHOTS}${name}.png`, fullPage: true })
}
