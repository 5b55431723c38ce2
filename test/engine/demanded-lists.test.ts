import { expect, test } from 'vitest'
import { createDemandedLists } from '../../src/engine/context/context.ts'
import { createFreshness } from '../../src/store/rows/freshness.ts'
import { numberedPage, startScriptedApi } from '../support/scripted-api.ts'
import { startCrm } from './crm-world.ts'
import { startTrial } from './trial-backfill.ts'
import { startTimed } from './trial-timed.ts'

test('a demand for a list with scopes reads every scope once', async () => {
  const world = await startCrm({ deal: { 1: { updated: -60 } }, company: { 2: { updated: -60 } } })
  const trial = await startTrial(world.api)
  await trial.run(['crm_objects', 'crm_records'])
  const timed = await startTimed(world.api, trial, ['crm_objects', 'crm_records'])
  await timed.drain()
  const lists = () => world.api.asked('/v2/objects/{object}/records').map(({ params }) => params[0])
  const before = lists().length
  timed.context.demandedLists.add('crm_records.list')
  await timed.drain()
  expect(lists().slice(before).sort()).toEqual(['company', 'deal'])
})

test('a list that is demanded while it is requested is read once more', async () => {
  const api = await startScriptedApi()
  const members = [{ id: 'a', name: 'Aiko' }]
  api.on('/v1/members', () => numberedPage([...members]))
  const trial = await startTrial(api)
  await trial.run(['members'])
  const timed = await startTimed(api, trial, ['members'])
  timed.context.demandedLists.add('members.list')
  const early = await timed.ask('members.list')
  members.push({ id: 'b', name: 'Ben' })
  timed.context.demandedLists.add('members.list')
  await early.apply()
  await timed.drain()
  expect(trial.column('SELECT id FROM live_members ORDER BY id')).toEqual(['a', 'b'])
  expect(api.asked('/v1/members')).toHaveLength(3)
})

test('a pass over an older segment does not meet the demand for the newest segment', () => {
  const freshness = createFreshness()
  const lists = createDemandedLists(freshness)
  const [newest, older] = [1, 2]
  lists.add('messages.list')
  lists.passBegan('messages.list', older, freshness.begin())
  expect(lists.isDemanded('messages.list', newest)).toBe(true)
  lists.passBegan('messages.list', newest, freshness.begin())
  expect(lists.isDemanded('messages.list', newest)).toBe(false)
  lists.add('messages.list')
  expect(lists.isDemanded('messages.list', newest)).toBe(true)
})
