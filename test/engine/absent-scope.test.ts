import { describe, expect, test } from 'vitest'
import { resourceNamed } from '../../src/catalog/catalog.ts'
import { CONFIRM_AFTER_MS } from '../../src/engine/deletions/deletion-states.ts'
import { wantList } from '../../src/engine/due/wants.ts'
import { recordOutcome } from '../../src/engine/run/round-end.ts'
import { refused, startScriptedApi, v1Page } from '../support/scripted-api.ts'
import { outcomeOf, startTrial, stateOf, type Trial } from './trial-backfill.ts'
import { startTimed } from './trial-timed.ts'

/** A collection whose list of meetings answers 404, although the collection may still exist. */

const CHOSEN = ['collections', 'collection_meetings'] as const
const MINUTE = 60_000

async function startCollections() {
  const api = await startScriptedApi()
  const world = { collections: ['a', 'b'], isRefused: false }
  const isShown = (id = '') => world.collections.includes(id)
  api.on('/v1/collections', () => v1Page(world.collections.map(id => ({ id }))))
  api.on('/v1/collections/{id}', ({ params: [id] }) =>
    isShown(id) ? { body: { data: { id } } } : refused(404),
  )
  api.on('/v1/meetings', ({ query: { collection_id: id } }) =>
    (id === 'a' && world.isRefused) || !isShown(id) ? refused(404) : v1Page([{ meeting_id: `of ${id}` }]),
  )
  const trial = await startTrial(api)
  expect((await trial.run(CHOSEN)).complete).toBe(true)
  const timed = await startTimed(api, trial, CHOSEN)
  /** Reads everything due, as the daemon does in one run. */
  const run = async () => {
    await timed.drain()
    await trial.store.transaction(() => {
      for (const name of CHOSEN) recordOutcome(timed.context, resourceNamed(name), true)
    })
    for (const name of CHOSEN) timed.context.runs.begin(name)
  }
  const demand = () => wantList(timed.context, 'collection_meetings.list')
  const meetings = () => trial.column('SELECT meeting_id FROM live_collection_meetings ORDER BY 1')
  return { world, trial, timed, run, demand, meetings }
}

test('a collection whose meetings answer 404 twice makes its resource failing until they are listed again', async () => {
  const { world, trial, timed, run, demand, meetings } = await startCollections()
  world.isRefused = true
  demand()
  await run()
  expect(stateOf(trial, 'collection_meetings')).toBe('ok')
  timed.moveClock(MINUTE)
  await run()
  expect(stateOf(trial, 'collection_meetings')).toBe('failing')
  expect(meetings()).toEqual(['of a', 'of b'])
  world.isRefused = false
  timed.moveClock(MINUTE)
  await run()
  expect(stateOf(trial, 'collection_meetings')).toBe('ok')
  expect(meetings()).toEqual(['of a', 'of b'])
})

test('a collection that is deleted while its meetings are read is no failure', async () => {
  const { world, trial, timed, run, demand, meetings } = await startCollections()
  world.collections = ['b']
  demand()
  await run()
  for (const ms of [CONFIRM_AFTER_MS, 15 * MINUTE]) {
    timed.passTime(ms)
    await run()
    expect(stateOf(trial, 'collection_meetings')).toBe('ok')
  }
  expect(meetings()).toEqual(['of b'])
})

test('a backfill fails for a collection whose meetings answer 404, and the next one completes', async () => {
  const { world, trial } = await startCollections()
  world.isRefused = true
  expect(outcomeOf(await trial.run(CHOSEN), 'collection_meetings')).toBe('failed')
  world.isRefused = false
  expect(outcomeOf(await trial.run(CHOSEN), 'collection_meetings')).toBe('complete')
})

describe('a workspace without collections', () => {
  const states = (trial: Trial) =>
    trial.all(`SELECT resource, state, complete_as_of IS NOT NULL AS isComplete FROM sync_status
      WHERE resource IN ('collections', 'collection_meetings')`)

  test('has all meetings of its collections, as of when the collections were read', async () => {
    const api = await startScriptedApi()
    api.on('/v1/collections', () => v1Page([]))
    const trial = await startTrial(api)
    expect((await trial.run(CHOSEN)).complete).toBe(true)
    expect(states(trial)).toEqual([
      { resource: 'collections', state: 'ok', isComplete: 1 },
      { resource: 'collection_meetings', state: 'ok', isComplete: 1 },
    ])
  })

  test('is not known as long as the list of collections fails', async () => {
    const api = await startScriptedApi()
    api.on('/v1/collections', () => refused(400))
    const trial = await startTrial(api)
    expect((await trial.run(CHOSEN)).complete).toBe(false)
    expect(states(trial)).toEqual([
      { resource: 'collections', state: 'failing', isComplete: 0 },
      { resource: 'collection_meetings', state: 'backfilling', isComplete: 0 },
    ])
  })
})
