import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { RESOURCE_NAMES } from '../../src/catalog/resource-names.ts'
import type { DemoEvent } from '../../src/commands/demo/change-driver.ts'
import { DEMO_CHANGES, pickWeighted } from '../../src/commands/demo/changes.ts'
import { type DemoState, demoSummary, drawDemo } from '../../src/commands/demo/display.ts'
import { isLocked } from '../../src/store/file/lock.ts'
import { openWarehouse } from '../../src/store/open-warehouse.ts'
import { textWidth } from '../../src/terminal/text-width.ts'
import { emptyFolder, parley, startParley } from '../cli/parley.ts'
import { until } from '../support/until.ts'

/** Processes of this demo, found by an unusual number of messages or by the file. */
function running(marks: readonly string[]): string[] {
  const all = execFileSync('ps', ['-A', '-o', 'args='], { encoding: 'utf8' }).split('\n')
  return all.filter(line => line.includes('cli.js') && marks.some(mark => line.includes(mark)))
}

const unusual = (which: number) => String(300 + which * 100 + (process.pid % 100))

describe('a demo of the daemon', () => {
  test('the demo reports each change and its arrival in the warehouse, and Ctrl-C stops all of it in order', async () => {
    const cwd = emptyFolder()
    const messages = unusual(0)
    const demo = startParley(['demo', '--daemon', '--messages', messages], { cwd })
    await demo.says('in the warehouse after')
    expect(running([`--messages ${messages}`])).toHaveLength(2)
    demo.child.kill('SIGINT')
    const { status, stdout, stderr } = await demo.ended
    expect(status, stderr).toBe(0)
    expect(stderr).toContain('status --database demo.db')
    expect(stderr).toMatch(/activities +(ok|backfilling) /)
    expect(stdout).toContain('half within')
    expect(stdout).toContain('parley daemon has stopped')
    expect(running([`--messages ${messages}`])).toEqual([])
    expect(isLocked(join(cwd, 'demo.db'))).toBe(false)
  })

  test('the demo ends after the given number of minutes', async () => {
    const { status, stdout } = await parley(['demo', '--daemon', '--minutes', '0.05', '--messages', '100'])
    expect(status).toBe(0)
    expect(stdout).toContain('parley daemon has stopped')
  })

  test('a killed demo leaves no process running', async () => {
    const cwd = emptyFolder()
    const messages = unusual(1)
    const demo = startParley(['demo', '--daemon', '--messages', messages], { cwd })
    await demo.says('The status server listens')
    demo.child.kill('SIGKILL')
    await demo.ended
    const left = () => [
      ...running([`--messages ${messages}`]),
      ...(isLocked(join(cwd, 'demo.db')) ? ['daemon'] : []),
    ]
    expect(await until(left, all => all.length === 0)).toEqual([])
  })

  test.each([
    ['--minutes', '5'],
    ['--daemon', '--minutes', '0'],
    ['--daemon', '--minutes', 'ten'],
  ])('the demo refuses %s %s %s', async (...flags) => {
    const cwd = emptyFolder()
    const { status, stderr } = await parley(['demo', ...flags], { cwd })
    expect(status).toBe(64)
    expect(stderr).toContain('--minutes ')
    expect(existsSync(join(cwd, 'demo.db'))).toBe(false)
  })
})

test.each(DEMO_CHANGES)('the queries about $kind fit the schema', ({ choose, arrived }) => {
  const db = openWarehouse({ path: join(emptyFolder(), 'demo.db') })
  const named = (sql: string) => db.prepare(sql).columns()
  const parameters = choose === undefined ? ['id'] : named(choose).map(({ name }) => name)
  expect(parameters).toContain('id')
  expect(db.prepare(arrived).all(Object.fromEntries(parameters.map(name => [name, 'x'])))).toEqual([])
  db.close()
})

test('a weighted draw follows the weights', () => {
  const things = [
    { name: 'a', weight: 1 },
    { name: 'b', weight: 3 },
  ]
  expect([0, 0.24, 0.26, 0.99].map(chance => pickWeighted(things, chance)?.name)).toEqual([
    'a',
    'a',
    'b',
    'b',
  ])
  expect(pickWeighted([], 0)).toBeUndefined()
})

const NOW = Date.parse('2026-03-04T05:06:07Z')

const event = (kind: string | undefined, lagMs: number | undefined): DemoEvent => ({
  at: NOW - 60_000,
  kind,
  what: kind === undefined ? 'the API works normally again' : `${kind}, お見積りの件 ${'long '.repeat(30)}`,
  lagMs,
})

const EVENTS = [
  event('a new e-mail', 2000),
  event('a new e-mail', 4000),
  event('a deal that moves on', undefined),
  event(undefined, undefined),
]

const STATE: DemoState = {
  resources: RESOURCE_NAMES.map((resource, number) => ({
    resource,
    state: number % 2 === 0 ? 'ok' : 'backfilling',
    reason: null,
    rows_live: 1234,
    rows_deleted: 0,
    newest_at: null,
    fresh_as_of: null,
    complete_as_of: null,
    backfill_done: 0,
    backfill_total: null,
    pending_tasks: 0,
    rejected: 0,
    last_success_at: null,
    next_run_at: null,
    by_state: null,
    failing_since: null,
    failed_in_a_row: null,
    deletions_held_since: null,
    arrival_lag: null,
  })),
  events: Array.from({ length: 20 }, () => EVENTS).flat(),
  requests: { total: 99, throttled: 1, perSecond: undefined },
  now: NOW,
  elapsedMs: 61_000,
  isStopping: false,
}

describe('the picture of a demo', () => {
  test.each([
    [80, 24],
    [120, 50],
    [40, 10],
  ])('the picture fits on %d columns and %d rows, with the latest events at the bottom', (columns, rows) => {
    const lines = drawDemo(STATE, { columns, rows, colour: false })
    expect(Math.max(...lines.map(textWidth))).toBeLessThanOrEqual(columns)
    expect(lines.length).toBeLessThanOrEqual(rows)
  })

  test('the picture counts the changes that have arrived and those that have not', () => {
    const text = drawDemo(STATE, { columns: 200, rows: 60, colour: false }).join('\n')
    expect(text).toContain(
      '60 changes, 40 in the warehouse, half of them within 2 s; 20 to come, the oldest made 1 min ago',
    )
    expect(text).toContain(`${RESOURCE_NAMES.length - 7} more resources: `)
    expect(text).toMatch(/the API works normally again$/)
  })
})

test('the summary of a demo has a line for each kind of change', () => {
  const lines = demoSummary(EVENTS).map(line => line.split(/ {2,}/))
  expect(lines).toEqual([
    ['change', 'made', 'in the warehouse', 'half within', 'longest'],
    ['a new e-mail', '2', '2', '2 s', '4 s'],
    ['a deal that moves on', '1', '0', '-', '-'],
  ])
})
