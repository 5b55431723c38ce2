import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { DemoEvent } from '../../src/commands/demo/change-driver.ts'
import { DEMO_CHANGES, pickWeighted } from '../../src/commands/demo/changes.ts'
import { currentLine, demoSummary } from '../../src/commands/demo/display.ts'
import { isLocked } from '../../src/store/file/lock.ts'
import { openWarehouse } from '../../src/store/open-warehouse.ts'
import { textWidth } from '../../src/terminal/text-width.ts'
import { emptyFolder, parleyProcess, startParley } from '../cli/parley.ts'
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
    expect(stderr).toMatch(/The page that shows all of it: http:\/\/127\.0\.0\.1:\d+\/\n/)
    expect(stdout).toContain('half within')
    expect(stdout).toContain('parley daemon has stopped')
    expect(running([`--messages ${messages}`])).toEqual([])
    expect(isLocked(join(cwd, 'demo.db'))).toBe(false)
  })

  test('the demo ends after the given number of minutes', async () => {
    const { status, stdout } = await parleyProcess([
      'demo',
      '--daemon',
      '--minutes',
      '0.05',
      '--messages',
      '100',
    ])
    expect(status).toBe(0)
    expect(stdout).toContain('parley daemon has stopped')
  })

  test('a killed demo leaves no process running', async () => {
    const cwd = emptyFolder()
    const messages = unusual(1)
    const demo = startParley(['demo', '--daemon', '--messages', messages], { cwd })
    await demo.says('The page that shows all of it')
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
    const { status, stderr } = await parleyProcess(['demo', ...flags], { cwd })
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

const event = (kind: string | undefined, lagMs: number | undefined): DemoEvent => ({
  at: Date.parse('2026-03-04T05:06:07Z'),
  kind,
  what: kind === undefined ? 'the API works normally again' : `${kind}, お見積りの件 ${'long '.repeat(30)}`,
  lagMs,
})

const ARRIVED = event('a new e-mail', 4000)
const EVENTS = [
  event('a new e-mail', 2000),
  event(undefined, undefined),
  ARRIVED,
  event('a deal that moves on', undefined),
]

describe('the line of a demo', () => {
  test.each([20, 80, 400])('the line fits on %d columns', columns => {
    expect(textWidth(currentLine(EVENTS, { columns, colour: false }))).toBeLessThanOrEqual(columns)
  })

  test('the line counts the changes and names the latest one that has arrived', () => {
    const line = currentLine(EVENTS, { columns: 400, colour: false })
    expect(line).toBe(`3 changes, 2 in the warehouse; 05:06:07 ${ARRIVED.what}: in the warehouse after 4 s`)
    expect(currentLine([], { columns: 80, colour: false })).toBe('0 changes, 0 in the warehouse')
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
