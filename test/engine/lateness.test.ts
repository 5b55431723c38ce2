import { describe, expect, test } from 'vitest'
import { createLog } from '../../src/base/log.ts'
import { resourceNamed } from '../../src/catalog/catalog.ts'
import type { ResourceName } from '../../src/declare/resource-names.ts'
import { adoptLateness, latenessAt, noteLateness } from '../../src/engine/due/lateness.ts'
import { recordOutcome } from '../../src/engine/run/round-end.ts'
import { virtualClock } from '../api/virtual-clock.ts'
import { startScriptedApi } from '../support/scripted-api.ts'
import { startTrial, stateOf } from './trial-backfill.ts'
import { startTimed } from './trial-timed.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const WEEK = 7 * 24 * HOUR
const NOW = Date.parse('2026-03-04T05:06:07.000Z')

describe('a list', () => {
  const part = (agoMs: number, intervalMs: number) => ({ listedAt: NOW - agoMs, intervalMs })
  test.each([
    ['is on schedule within twice its interval', [part(2 * HOUR, HOUR)], NOW, undefined],
    ['is late after twice its interval', [part(2 * HOUR + 1, HOUR)], NOW, 'late'],
    ['is late as soon as one part is', [part(0, HOUR), part(3 * HOUR, HOUR)], NOW, 'late'],
    ['that is polled each second may be a minute late', [part(MINUTE, 1000)], NOW, undefined],
    ['that is polled each second is late after more', [part(MINUTE + 1001, 1000)], NOW, 'late'],
    ['may fall due in a week', [part(0, WEEK)], NOW + WEEK, undefined],
    ['never falls due when it does so in more than a week', [part(0, WEEK)], NOW + 2 * WEEK, 'never-due'],
    ['never falls due when no part of it does', [], undefined, 'never-due'],
    ['that was never read is due and not late', [], NOW, undefined],
  ])('a list %s', (_, parts, dueAt, reason) => {
    const lateness = latenessAt([{ feed: 'members.list', dueAt, parts }], { now: NOW, longestMs: WEEK })
    expect(lateness?.reason).toBe(reason)
  })
})

test('a resource that failed in an earlier session is logged once when it is read again', async () => {
  const api = await startScriptedApi()
  const trial = await startTrial(api)
  const clock = virtualClock(Date.now())
  const { context, drain } = await startTimed(api, trial, ['activities'], { clock, pollMs: 5 * MINUTE })
  const lines: string[] = []
  const log = await createLog({ level: 'info', stream: { write: line => lines.push(line) } })
  const settle = () =>
    trial.store.transaction(() => recordOutcome({ ...context, log }, resourceNamed('activities'), true))
  await trial.store.transaction(() =>
    trial.store.state.failing('activities', 'The API answers 500', context.now()),
  )
  await clock.advance(MINUTE)
  await drain()
  await settle()
  await settle()
  expect(lines.map(line => JSON.parse(line))).toMatchObject([
    { level: 'info', msg: 'Resource is read again', resource: 'activities', duration_ms: MINUTE },
  ])
})

describe('a resource whose newest end is not read', () => {
  test('the resource is failing after twice the poll interval, with the list and the time, and ok once it was read', async () => {
    const api = await startScriptedApi()
    const trial = await startTrial(api)
    const clock = virtualClock(Date.now())
    const { context, drain } = await startTimed(api, trial, ['activities'], { clock, pollMs: 5 * MINUTE })
    const activities = resourceNamed('activities')
    const settle = () => trial.store.transaction(() => recordOutcome(context, activities, true))
    const look = () => trial.store.transaction(() => noteLateness(context, [activities]))
    await drain()
    await settle()
    await look()
    expect(stateOf(trial, 'activities')).toBe('ok')

    await clock.advance(11 * MINUTE)
    await look()
    expect(stateOf(trial, 'activities')).toBe('failing')
    const [reason] = trial.column("SELECT reason FROM sync_status WHERE resource = 'activities'")
    expect(reason).toMatch(
      /^activities\.list: not read within twice its interval \(last complete pass began: 20[-\d]{8} \d\d:\d\d UTC\)\. The API may be slow or refuse requests, .* Run parley doctor\.$/,
    )
    await settle()
    expect(stateOf(trial, 'activities')).toBe('failing')

    await drain()
    await settle()
    expect(stateOf(trial, 'activities')).toBe('ok')
  })

  test('the resource is ok again as soon as it is read on schedule, also while its run continues', async () => {
    const api = await startScriptedApi()
    const trial = await startTrial(api)
    const clock = virtualClock(Date.now())
    const { context, drain } = await startTimed(api, trial, ['activities'], { clock, pollMs: 5 * MINUTE })
    const activities = resourceNamed('activities')
    const look = () => trial.store.transaction(() => noteLateness(context, [activities]))
    await drain()
    await trial.store.transaction(() => recordOutcome(context, activities, true))
    await clock.advance(11 * MINUTE)
    await look()
    expect(stateOf(trial, 'activities')).toBe('failing')
    await drain()
    await look()
    expect(stateOf(trial, 'activities')).toBe('ok')
  })

  test('the resource does not become failing while the API is away, nor until its lists had time to be read', async () => {
    const api = await startScriptedApi()
    const trial = await startTrial(api)
    const clock = virtualClock(Date.now())
    const { context, drain } = await startTimed(api, trial, ['activities'], { clock, pollMs: 5 * MINUTE })
    const activities = resourceNamed('activities')
    const look = () => trial.store.transaction(() => noteLateness(context, [activities]))
    await drain()
    await trial.store.transaction(() => recordOutcome(context, activities, true))
    context.excusedUntil.set('activities', Number.POSITIVE_INFINITY)
    await clock.advance(24 * HOUR)
    await look()
    expect(stateOf(trial, 'activities')).toBe('ok')
    context.excusedUntil.set('activities', clock.elapsed() + 10 * MINUTE)
    await clock.advance(9 * MINUTE)
    await look()
    expect(stateOf(trial, 'activities')).toBe('ok')
    await clock.advance(MINUTE)
    await look()
    expect(stateOf(trial, 'activities')).toBe('failing')
  })

  test.each([
    ['twice its interval', MINUTE, 2 * MINUTE],
    ['ten minutes, if that is less', HOUR, 10 * MINUTE],
  ])(
    'the resource does not become failing before its process has been reading for %s',
    async (_, pollMs, firstMs) => {
      const api = await startScriptedApi()
      const trial = await startTrial(api)
      const clock = virtualClock(Date.now())
      const { context, drain } = await startTimed(api, trial, ['activities'], { clock, pollMs })
      const activities = resourceNamed('activities')
      const look = () => trial.store.transaction(() => noteLateness(context, [activities]))
      await drain()
      await trial.store.transaction(() => recordOutcome(context, activities, true))
      await clock.advance(24 * HOUR)
      context.awakeSince = clock.elapsed()
      await clock.advance(firstMs - 1)
      await look()
      expect(stateOf(trial, 'activities')).toBe('ok')
      await clock.advance(1)
      await look()
      expect(stateOf(trial, 'activities')).toBe('failing')
      context.awakeSince = clock.elapsed()
      await look()
      expect(stateOf(trial, 'activities')).toBe('failing')
    },
  )

  describe('the log', () => {
    /** A late resource, and the lines about its schedule. */
    async function lateActivities() {
      const api = await startScriptedApi()
      const trial = await startTrial(api)
      const clock = virtualClock(Date.now())
      const timed = await startTimed(api, trial, ['activities'], { clock, pollMs: 5 * MINUTE })
      const lines: { level: string; msg: string; resource: string }[] = []
      const stream = { write: (text: string) => lines.push(JSON.parse(text)) }
      const context = { ...timed.context, log: await createLog({ level: 'info', stream }) }
      const activities = resourceNamed('activities')
      const settle = () => trial.store.transaction(() => recordOutcome(context, activities, true))
      const look = () => trial.store.transaction(() => noteLateness(context, [activities]))
      await timed.drain()
      await settle()
      await look()
      await clock.advance(11 * MINUTE)
      for (let looks = 0; looks < 2; looks += 1) await look()
      const logged = () => lines.map(({ level, msg, resource }) => ({ level, msg, resource }))
      return { trial, context, activities, drain: timed.drain, settle, look, logged }
    }

    const BEGINS = { level: 'error', msg: 'Resource is not read on schedule', resource: 'activities' }
    const ENDS = { level: 'info', msg: 'Resource is read on schedule again', resource: 'activities' }

    test('the log says once that the resource is late, and once that it is read on schedule again', async () => {
      const { drain, look, logged } = await lateActivities()
      expect(logged()).toEqual([BEGINS])
      await drain()
      for (let looks = 0; looks < 2; looks += 1) await look()
      expect(logged()).toEqual([BEGINS, ENDS])
    })

    test('the log says that the resource is on schedule again when the end of a run has already cleared the failure', async () => {
      const { trial, drain, settle, look, logged } = await lateActivities()
      await drain()
      await settle()
      expect(stateOf(trial, 'activities')).toBe('ok')
      await look()
      expect(logged()).toEqual([BEGINS, ENDS])
    })

    test('the log says that the resource is on schedule again only after a failure with another reason is over', async () => {
      const { trial, context, drain, settle, look, logged } = await lateActivities()
      await trial.store.transaction(() =>
        trial.store.state.failing('activities', 'The API answers 500', context.now()),
      )
      await drain()
      await look()
      expect(logged()).toEqual([BEGINS])
      await settle()
      await look()
      expect(logged()).toEqual([BEGINS, ENDS])
    })

    test('the log of the next session says that a resource is on schedule again which was late in an earlier session', async () => {
      const { trial, context, activities, drain, settle, logged } = await lateActivities()
      const next = { ...context, late: new Set<ResourceName>() }
      await trial.store.transaction(() => adoptLateness(next, [activities]))
      await drain()
      await settle()
      await trial.store.transaction(() => noteLateness(next, [activities]))
      expect(logged()).toEqual([BEGINS, ENDS])
    })
  })

  test('the resource keeps an earlier reason of its failure', async () => {
    const api = await startScriptedApi()
    const trial = await startTrial(api)
    const { context, drain } = await startTimed(api, trial, ['activities'], {
      clock: virtualClock(Date.now()),
    })
    const activities = resourceNamed('activities')
    await drain()
    await trial.store.transaction(() => recordOutcome(context, activities, true))
    await trial.store.transaction(() => {
      trial.store.state.failing(
        'activities',
        'The API answers 403 for data that it returned before',
        context.now(),
      )
      noteLateness(context, [activities])
    })
    expect(stateOf(trial, 'activities')).toBe('failing')
  })
})
