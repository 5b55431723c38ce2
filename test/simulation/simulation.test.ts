import { randomUUID } from 'node:crypto'
import { mkdtempSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { describe, expect, onTestFinished, test } from 'vitest'
import { timeOfClock } from './checks.ts'
import type { Deed } from './deeds.ts'
import { type Life, lifeOf, live } from './life.ts'
import { createMachine, httpTimers } from './machine.ts'
import { MUTANTS, mutatedFile } from './mutants.ts'
import { grown } from './rest.ts'
import {
  answers,
  backfill,
  change,
  DAY,
  HOUR,
  leftOut,
  look,
  MINUTE,
  SECOND,
  life as scripted,
  WORKSPACE,
} from './scripted.ts'

test('the same seed gives the same requests at the same times, and the same rows', async () => {
  const { deeds, ...others } = lifeOf(9, { days: 1, rest: 0 })
  const life: Life = {
    ...others,
    deeds: [
      ...deeds,
      { kind: 'command', argv: ['resync', 'crm_records'], atMs: DAY },
      { kind: 'kill', statement: 100, downMs: 1000, atMs: DAY + HOUR },
    ],
  }
  const one = await live(life)
  const other = await live(life)
  expect(one.findings).toEqual([])
  expect(other.digests).toEqual(one.digests)
  expect(other.requests).toBeGreaterThan(50)
})

const SEPARATE = "'2026-07-01T00:00:00.000Z'"

/** What a fault of the program would do to the rows of a warehouse, and what is said of it. */
test.each([
  [
    'is lost',
    'DELETE FROM activities WHERE id = (SELECT max(id) FROM activities)',
    'is missing, though activities is',
  ],
  [
    'is deleted wrongly',
    `UPDATE activities SET _deleted_at = ${SEPARATE} WHERE id = (SELECT max(id) FROM activities)`,
    'was deleted at 2026-07-01',
  ],
])('a row that %s is found on the same day', async (_, sql, said) => {
  const { findings, days } = await live({
    ...lifeOf(3),
    deeds: [{ kind: 'write', sql, atMs: 24 * HOUR - 1000 }],
  })
  expect(findings.join()).toContain(said)
  expect(days).toBe(1)
})

describe('the time at which the machine has noted an instant', () => {
  const clocks = [
    { from: 0, offMs: 0 },
    { from: 10 * HOUR, offMs: 40 * DAY },
    { from: 20 * HOUR, offMs: 0 },
    { from: 30 * HOUR, offMs: -HOUR },
  ]
  test.each([
    ['under a right clock', 5 * HOUR, 5 * HOUR],
    ['under a clock that is ahead', 40 * DAY + 12 * HOUR, 12 * HOUR],
    ['under a clock that is behind', 35 * HOUR, 36 * HOUR],
    ['that the clock has shown twice is the later one', 29.5 * HOUR, 30.5 * HOUR],
    ['that the clock has never shown is that instant', 30 * DAY, 30 * DAY],
  ])('%s', (_, shown, time) => {
    expect(timeOfClock(shown, clocks, 2 * DAY)).toBe(time)
  })
})

test('locks of other programs may overlap', async () => {
  const lock = (atMs: number): Deed => ({ kind: 'lock', atMs, forMs: 20 * SECOND })
  const { findings } = await live(
    scripted({ resources: ['members'] }, lock(HOUR), lock(HOUR + 10 * SECOND), lock(2 * HOUR)),
  )
  expect(findings).toEqual([])
})

test('a row that was deleted under a clock ahead and is published again is not taken for one deleted wrongly', async () => {
  const { findings } = await live(
    scripted(
      { resources: ['members'] },
      { kind: 'clock', atMs: HOUR, offMs: 40 * DAY, forMs: 20 * HOUR },
      change(2 * HOUR, { kind: 'hide', resource: 'members' }, 7 * HOUR),
      look(9 * HOUR + MINUTE),
    ),
  )
  expect(findings).toEqual([])
})

test('texts are read again a week after lists have shown wrong Message-IDs, once each', async () => {
  const { findings } = await live(
    scripted(
      {
        resources: ['messages', 'message_bodies'],
        workspace: { ...WORKSPACE, messages: 120 },
        quietDays: 8,
        restDays: 8,
      },
      answers(5 * HOUR, 20 * MINUTE, {
        kind: 'rewrite',
        from: '"header_message_id":("[^"]*"|null)',
        to: '"header_message_id":"<1>"',
      }),
      backfill(5 * HOUR + MINUTE),
    ),
  )
  expect(findings).toEqual([])
})

test('all that was hidden for a while is shown again, but for what was deleted meanwhile', async () => {
  const { findings } = await live({
    ...lifeOf(3, { rest: 0 }),
    resources: ['activities'],
    pollSeconds: 21_600,
    deeds: [
      {
        kind: 'change',
        change: { kind: 'hide', resource: 'activities', count: 1000 },
        backMs: 2 * HOUR,
        atMs: HOUR,
      },
      { kind: 'change', change: { kind: 'delete', resource: 'meetings', count: 10 }, atMs: 2 * HOUR },
    ],
  })
  expect(findings).toEqual([])
})

test.each([
  [['messages', 'message_bodies'], 'messages', '/v2/messages'],
  [['crm_objects', 'crm_records'], 'crm_records', '/v2/objects/{object}/records'],
  [['crm_objects', 'crm_records', 'crm_record_links'], 'crm_record_links', '/v2/objects/{object}/records'],
] as const)(
  'of %j no row is deleted that its list leaves out for twenty minutes, also when it is asked by ids',
  async (resources, resource, route) => {
    const { findings } = await live(scripted({ resources }, ...leftOut(resource, route)))
    expect(findings).toEqual([])
  },
)

test.each(MUTANTS.map(mutant => [mutant.does, mutant] as const))(
  'the program that %s can be made of this one',
  (_, mutant) => {
    expect(mutatedFile(mutant)).toContain(mutant.to)
  },
)

describe('what grows in a rest of ninety days is named', () => {
  const days = (rows: (day: number) => number) =>
    Array.from({ length: 90 }, (_, day) => ({ sync_tasks: rows(day), requests: 24 }))
  test.each([
    ['a row a day', days(day => day), ['sync_tasks grows while nothing changes: at most 59, then 89']],
    ['nothing after the first month', days(day => Math.min(day, 30)), []],
    ['the week that comes and goes', days(day => 100 * Math.floor((day % 7) / 6)), []],
    ['a row a day in a shorter rest', days(day => day).slice(1), []],
  ])('%s', (_, rest, found) => {
    expect(grown(rest)).toEqual(found)
  })
})

test('a machine that is closed leaves the process as it was, imported names included', () => {
  const names = () => [
    setTimeout,
    setImmediate,
    Date,
    performance.now,
    Math.random,
    pause,
    randomUUID,
    Worker,
  ]
  const before = names()
  const machine = createMachine({ seed: 1, start: 0, servers: {}, files: [] })
  expect(names().filter((name, index) => name === before[index])).toEqual([])
  machine.close()
  expect(names()).toEqual(before)
})

test('the deadlines of HTTP requests pass after the kill of a program that waits for an answer', async () => {
  let isAsked = false
  const silent = createServer(() => {
    isAsked = true
  })
  const machine = createMachine({ seed: 1, start: 0, servers: { 'api.example:80': silent }, files: [] })
  onTestFinished(machine.close)
  const folder = mkdtempSync(join(tmpdir(), 'parley-machine-'))
  const program = await machine.start(['backfill', '--database', join(folder, 'parley.db')], {
    PARLEY_BASE_URL: 'http://api.example',
    PARLEY_API_KEY: 'key',
    PARLEY_WORKSPACE_ID: 'acme',
  })
  await machine.until(() => isAsked)
  program.kill()
  await machine.until(program.isKilled)
  let isOver = false
  httpTimers.setFastTimeout(() => {
    isOver = true
  }, 5000)
  await machine.until(() => isOver)
  expect(machine.now()).toBeLessThan(60_000)
})

test('the deadlines of HTTP requests pass again once a machine is closed', async () => {
  const machine = createMachine({ seed: 1, start: 0, servers: {}, files: [] })
  httpTimers.setFastTimeout(() => undefined, 5000)
  machine.close()
  await new Promise<void>(resolve => httpTimers.setFastTimeout(resolve, 1))
})
