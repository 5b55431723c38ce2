import { describe, expect, test } from 'vitest'
import { resourceNamed } from '../../src/catalog/catalog.ts'
import type { ResourceName } from '../../src/declare/resource-names.ts'
import { CONFIRM_AFTER_MS } from '../../src/engine/deletions/deletion-states.ts'
import { recordOutcome } from '../../src/engine/run/round-end.ts'
import { startTrial, stateOf, type Trial, uuid } from '../engine/trial-backfill.ts'
import { startTimed } from '../engine/trial-timed.ts'
import { refused, type ScriptedApi, startScriptedApi, v1Page, v2Page } from '../support/scripted-api.ts'

/** Mass deletions of rows that no list shows, only single reads. The guard holds them back for a day. */

const HOUR = 3_600_000
const DAY = 24 * HOUR
const NUMBERS = Array.from({ length: 24 }, (_, number) => number)
const MEETINGS = NUMBERS.map(number => `m${number}`)

interface Case {
  resource: ResourceName
  chosen: readonly ResourceName[]
  /** Counts what analysts see. */
  live: string
  /** Serves the workspace; `isGone` says whether the rows are gone. */
  serve(api: ScriptedApi, isGone: () => boolean): void
}

function serveMeetings(api: ScriptedApi, routes: Readonly<Record<string, () => object>>): void {
  api.on('/v2/activities', () => v2Page([]))
  api.on('/v1/meetings', () => v1Page(MEETINGS.map(id => ({ meeting_id: id }))))
  const detail = routes['detail'] ?? (() => ({}))
  api.on('/v1/meetings/{id}', ({ params: [id] }) => {
    const shown = { body: { data: { meeting_id: id, overview_status: 'COMPLETED' } } }
    return { ...shown, ...detail() }
  })
  for (const part of ['transcript', 'playbook-results'])
    api.on(`/v1/meetings/{id}/${part}`, ({ params: [id] }) => ({
      body: { data: [{ id: `${part} of ${id}`, text: 'words' }] },
      ...routes[part]?.(),
    }))
}

const when = (isGone: () => boolean, status: number) => () => (isGone() ? refused(status) : {})

function serveDeals(api: ScriptedApi, isGone: () => boolean): void {
  const deals = NUMBERS.map(uuid)
  const page = (object: string, ids: readonly string[]) =>
    v2Page(ids.map(id => ({ id, object, visibility: 'workspace', fields: {} })))
  api.on('/v2/objects', () => ({ body: { data: [{ name: 'deal' }, { name: 'company' }] } }))
  api.on('/v2/objects/{object}', ({ params: [name] }) =>
    name === 'contact' ? refused(404) : { body: { name, fields: [] } },
  )
  api.on('/v2/objects/{object}/records', ({ params: [object = ''], query }) => {
    if (object === 'contact') return refused(404)
    if (query['related_id'] !== undefined && isGone()) return page(object, [])
    return page(object, object === 'deal' ? deals : [uuid(100)])
  })
}

const CASES: Readonly<Record<string, Case>> = {
  transcripts: {
    resource: 'transcripts',
    chosen: ['activities', 'meetings', 'transcripts'],
    live: 'SELECT count(DISTINCT meeting_id) FROM live_transcript_entries',
    serve: (api, isGone) => serveMeetings(api, { transcript: when(isGone, 404) }),
  },
  'playbook results': {
    resource: 'playbook_results',
    chosen: ['activities', 'meetings', 'playbook_results'],
    live: 'SELECT count(*) FROM live_playbook_results',
    serve: (api, isGone) => serveMeetings(api, { 'playbook-results': when(isGone, 404) }),
  },
  'contents of meetings': {
    resource: 'meetings',
    chosen: ['activities', 'meetings'],
    live: "SELECT count(*) FROM live_meetings WHERE access = 'open'",
    serve: (api, isGone) => serveMeetings(api, { detail: when(isGone, 403) }),
  },
  associations: {
    resource: 'crm_record_links',
    chosen: ['crm_objects', 'crm_records', 'crm_record_links'],
    live: 'SELECT count(*) FROM live_crm_record_links',
    serve: serveDeals,
  },
}

async function start({ chosen, serve, live }: Case) {
  const api = await startScriptedApi()
  let isGone = false
  serve(api, () => isGone)
  const trial = await startTrial(api)
  expect((await trial.run(chosen)).complete).toBe(true)
  const rows = () => trial.column(live)[0]
  expect(rows()).toBeGreaterThanOrEqual(24)
  const setGone = (gone: boolean) => {
    isGone = gone
  }
  return { api, trial, rows, setGone }
}

/** Waits this long several times. After each wait it reads everything that is due, as the daemon does. */
async function daemonOf(api: ScriptedApi, trial: Trial, { chosen, resource }: Case) {
  const timed = await startTimed(api, trial, chosen)
  return async (...waits: readonly number[]) => {
    for (const ms of waits) {
      timed.passTime(ms)
      await timed.drain()
      await trial.store.transaction(() => recordOutcome(timed.context, resourceNamed(resource), true))
      timed.context.runs.begin(resource)
    }
  }
}

const WEEK_OF_READS = [7 * DAY, CONFIRM_AFTER_MS, HOUR]

describe.each(Object.entries(CASES))('most %s are gone', (_, one) => {
  test('the daemon deletes them in the round that confirms the deletion', async () => {
    const { api, trial, rows, setGone } = await start(one)
    const before = rows()
    const goOn = await daemonOf(api, trial, one)
    setGone(true)
    await goOn(...WEEK_OF_READS, HOUR)
    expect(rows()).toBe(before)
    expect(stateOf(trial, one.resource)).toBe('failing')
    await goOn(DAY, CONFIRM_AFTER_MS, CONFIRM_AFTER_MS)
    expect(rows()).toBe(0)
    expect(stateOf(trial, one.resource)).not.toBe('failing')
  })

  test('nightly backfills delete them once a later one confirms the deletion', async () => {
    const { trial, rows, setGone } = await start(one)
    const before = rows()
    setGone(true)
    for (let nights = 0; nights < 2; nights += 1) {
      trial.passTime(7 * DAY)
      await trial.run(one.chosen)
      trial.passTime(2 * HOUR)
      await trial.run(one.chosen)
      if (nights === 0) expect(rows()).toBe(before)
    }
    expect(rows()).toBe(0)
  })

  test('the daemon keeps the ones that come back while the deletion is held back', async () => {
    const { api, trial, rows, setGone } = await start(one)
    const before = rows()
    const goOn = await daemonOf(api, trial, one)
    setGone(true)
    await goOn(...WEEK_OF_READS, HOUR)
    setGone(false)
    await goOn(DAY, CONFIRM_AFTER_MS, CONFIRM_AFTER_MS)
    expect(rows()).toBe(before)
    expect(stateOf(trial, one.resource)).not.toBe('failing')
  })
})
