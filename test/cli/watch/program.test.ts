import { request as send } from 'node:http'
import { expect, test } from 'vitest'
import { EXIT_STATUS } from '../../../src/base/errors.ts'
import { until } from '../../support/until.ts'
import { parley, startParley } from '../parley.ts'
import { api, placeFor, type Test, workspace } from '../workspace.ts'
import { startOnTerminal, type TerminalSession } from './pseudo-terminal.ts'

/** The ages on the screen change every second, so the screen itself says nothing about progress. */
async function shows(terminal: TerminalSession, pattern: RegExp): Promise<string> {
  const match = () => (pattern.test(terminal.text()) ? terminal.text() : undefined)
  const text = await until(match, found => found !== undefined)
  if (text === undefined) throw new Error(`The terminal does not show ${pattern}:\n${terminal.text()}`)
  return text
}

/** A made-up workspace whose meetings are not sent before `release`. */
async function workspaceWithLateMeetings(context: Test) {
  const { url, apiKey, workspaceId } = await workspace(context)
  let release: () => void = () => undefined
  const released = new Promise<void>(resolve => {
    release = resolve
  })
  const proxy = await api(context, async (request, response) => {
    if (request.url?.includes('/meetings')) await released
    const { method, headers } = request
    const passed = send(`${url}${request.url}`, { method, headers }, answer => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    passed.on('error', () => response.destroy())
    request.pipe(passed)
  })
  return { place: placeFor({ url: proxy.url, apiKey, workspaceId }), release }
}

test.concurrent('the display follows a backfill from the missing file to its end, and Ctrl-C leaves the terminal clean', async context => {
  const { place, release } = await workspaceWithLateMeetings(context)
  const terminal = startOnTerminal(context, ['status', '--watch'], place.cwd)
  expect(await shows(terminal, /There is no warehouse at/)).toMatch(
    /^Needs you since .*: There is no warehouse at/,
  )
  const backfill = startParley(['backfill'], place)
  // The reads of the held meetings take every place in flight.
  const during = await shows(terminal, /\nteams +backfilling +2 /)
  expect(during).toMatch(/^Loading history: \d+ of 17 resources are complete\nNothing to do\..*\n\[=*>/)
  expect(during).toMatch(/\nmeetings +backfilling +0 /)
  release()
  expect((await backfill.ended).status).toBe(EXIT_STATUS.done)
  expect(await shows(terminal, /^Complete: /)).toMatch(/\nmeetings +waiting +8 /)
  expect(terminal.lines().length).toBeLessThanOrEqual(24)
  expect(terminal.isClean()).toBe(false)

  terminal.resize(60, 12)
  await until(() => isFitting(terminal.lines()), Boolean)
  expect(terminal.lines()).toSatisfy(isFitting)

  terminal.type('\u0003')
  const left = await terminal.ended
  expect(left).toMatch(/^status 0$/m)
  expect(left).toMatch(/ icanon /)
  expect(left).toMatch(/ echo /)
  expect(left).not.toContain('Complete: ')
  expect(terminal.isClean()).toBe(true)
})

const isFitting = (lines: readonly string[]) => lines.length <= 12 && lines.every(line => line.length < 60)

test.concurrent('SIGTERM ends the display with status 0 and leaves the terminal clean', async context => {
  const terminal = startOnTerminal(context, ['status', '--watch'])
  await shows(terminal, /There is no warehouse at/)
  process.kill(terminal.pid() ?? Number.NaN, 'SIGTERM')
  expect(await terminal.ended).toMatch(/^status 0$/m)
  expect(terminal.isClean()).toBe(true)
})

test.concurrent('without a terminal --watch is wrong usage, and the error names the alternatives', async () => {
  expect(await parley(['status', '--watch'])).toEqual({
    status: EXIT_STATUS.usage,
    stdout: '',
    stderr:
      'parley: --watch needs a terminal on standard output\nhint: Use parley status --json or parley status --check instead.\n',
  })
})

test.concurrent.each([['--json'], ['--check'], ['--max-age', '15m'], ['--resource', 'teams']])(
  '--watch and %s exclude each other',
  async (...options) => {
    const { status, stderr } = await parley(['status', '--watch', ...options])
    expect(status).toBe(EXIT_STATUS.usage)
    expect(stderr).toMatch(/^parley: option '--watch' cannot be used with option '--(json|check)'\n/)
  },
)
