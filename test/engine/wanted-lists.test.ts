import { expect, test } from 'vitest'
import { wantList } from '../../src/engine/due/wants.ts'
import { numberedPage, startScriptedApi } from '../support/scripted-api.ts'
import { startCrm } from './crm-world.ts'
import { startTrial } from './trial-backfill.ts'
import { startTimed } from './trial-timed.ts'

test('a list with scopes that is wanted is read in every scope once', async () => {
  const world = await startCrm({ deal: { 1: { updated: -60 } }, company: { 2: { updated: -60 } } })
  const trial = await startTrial(world.api)
  await trial.run(['crm_objects', 'crm_records'])
  const timed = await startTimed(world.api, trial, ['crm_objects', 'crm_records'])
  await timed.drain()
  const lists = () => world.api.asked('/v2/objects/{object}/records').map(({ params }) => params[0])
  const before = lists().length
  wantList(timed.context, 'crm_records.list')
  await timed.drain()
  expect(lists().slice(before).sort()).toEqual(['company', 'deal'])
})

test('a list that is wanted while it is requested is read once more', async () => {
  const api = await startScriptedApi()
  const members = [{ id: 'a', name: 'Aiko' }]
  api.on('/v1/members', () => numberedPage([...members]))
  const trial = await startTrial(api)
  await trial.run(['members'])
  const timed = await startTimed(api, trial, ['members'])
  wantList(timed.context, 'members.list')
  const early = await timed.ask('members.list')
  members.push({ id: 'b', name: 'Ben' })
  wantList(timed.context, 'members.list')
  await early.apply()
  await timed.drain()
  expect(trial.column('SELECT id FROM live_members ORDER BY id')).toEqual(['a', 'b'])
  expect(api.asked('/v1/members')).toHaveLength(3)
})
