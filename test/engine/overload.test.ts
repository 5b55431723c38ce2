import { describe, expect, test } from 'vitest'
import type { ResourceName } from '../../src/declare/resource-names.ts'
import { type ScriptedApi, startScriptedApi, v1Page, v2Page } from '../support/scripted-api.ts'
import { at, event, startCrm } from './crm-world.ts'
import { startTrial, type Trial } from './trial-backfill.ts'
import { startTimed } from './trial-timed.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

interface Overloaded {
  trial: Trial
  /** Makes this number of requests of one feed, with this time between them. */
  ask(feed: string, requests: number, everyMs: number): Promise<void>
}

/** A warehouse that was completed a week ago, so that everything is due. */
async function weekAfterBackfill(api: ScriptedApi, resources: readonly ResourceName[]): Promise<Overloaded> {
  const trial = await startTrial(api)
  await trial.run(resources)
  const timed = await startTimed(api, trial, resources)
  timed.passTime(7 * DAY)
  return {
    trial,
    async ask(feed, requests, everyMs) {
      for (let made = 0; made < requests; made += 1) {
        timed.passTime(everyMs)
        await (await timed.ask(feed)).apply()
      }
    },
  }
}

describe('overload: more is due than the API allows', () => {
  test('the records of every CRM object are listed equally often', async () => {
    const objects = ['Order', 'company', 'contact', 'deal', 'renewal', 'site visit', 'stage', '契約書']
    const { api } = await startCrm(Object.fromEntries(objects.map(name => [name, {}])))
    const { ask } = await weekAfterBackfill(api, ['crm_objects', 'crm_records'])
    const before = api.requests.length
    await ask('crm_records.list', 3 * objects.length, 2 * HOUR)
    const listed = api.requests.slice(before).map(({ params: [object] }) => object)
    for (let from = 0; from < listed.length; from += objects.length)
      expect(listed.slice(from, from + objects.length).sort()).toEqual(objects)
  })

  test('every span of event time is listed again', async () => {
    const { api, activities } = await startCrm({})
    for (let minute = 0; minute < 100; minute += 1) activities.push(event(minute, -minute, []))
    api.on('/v2/activities', ({ query: { occurred_from: from = '', occurred_to: to = '~' } }) =>
      v2Page(activities.filter((_, minute) => at(-minute) >= from && at(-minute) <= to)),
    )
    const { trial, ask } = await weekAfterBackfill(api, ['activities'])
    const began = new Date(trial.clock.now()).toISOString()
    await ask('activities.list', 6, 3 * DAY)
    const spans = trial.column('SELECT listed_at FROM sync_segments WHERE to_at IS NOT NULL')
    expect(spans.length).toBeGreaterThan(2)
    expect(spans.filter(listedAt => String(listedAt) < began)).toEqual([])
  })

  test('every meeting is read again', async () => {
    const api = await startScriptedApi()
    const meetings = Array.from({ length: 140 }, (_, number) => ({
      meeting_id: String(number),
      start_time: at(-number),
      overview_status: 'COMPLETED',
    }))
    api.on('/v1/meetings', () => v1Page(meetings))
    api.on('/v1/meetings/{id}', ({ params: [id] }) => ({ body: { data: meetings[Number(id)] } }))
    const { ask } = await weekAfterBackfill(api, ['meetings'])
    const before = api.requests.length
    await ask('meetings.detail', 3 * meetings.length, HOUR / 4)
    const read = new Set(api.requests.slice(before).map(({ params: [id] }) => id))
    expect(read.size).toBe(meetings.length)
  })
})
