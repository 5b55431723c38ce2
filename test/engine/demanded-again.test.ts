import { expect, test } from 'vitest'
import { wantList } from '../../src/engine/due/wants.ts'
import { refused, type ScriptedAnswer, startScriptedApi, v1Page } from '../support/scripted-api.ts'
import { event, startCrm } from './crm-world.ts'
import { startTrial, uuid } from './trial-backfill.ts'
import { startTimed } from './trial-timed.ts'

const DAY = 86_400_000

async function startMeeting() {
  const api = await startScriptedApi()
  const parts = { title: 'First', words: { body: { data: [{ text: 'old' }] } } as ScriptedAnswer }
  api.on('/v1/meetings', () => v1Page([{ meeting_id: 'x' }]))
  api.on('/v1/meetings/{id}', () => ({ body: { data: { meeting_id: 'x', title: parts.title } } }))
  api.on('/v1/meetings/{id}/transcript', () => parts.words)
  const trial = await startTrial(api)
  await trial.run(['meetings', 'transcripts'])
  const timed = await startTimed(api, trial, ['meetings', 'transcripts'])
  timed.passTime(DAY)
  const words = () => trial.column('SELECT text FROM live_transcript_entries')
  return { parts, timed, words }
}

test('a transcript is read again when its meeting changed while the transcript was requested', async () => {
  const { parts, timed, words } = await startMeeting()
  const early = await timed.ask('transcripts.read')
  parts.words = { body: { data: [{ text: 'new' }] } }
  parts.title = 'Second'
  await (await timed.ask('meetings.detail')).apply()
  await early.apply()
  expect(words()).toEqual(['old'])
  await timed.drain()
  expect(words()).toEqual(['new'])
})

test('a refused transcript is read again when its meeting changed while the transcript was requested', async () => {
  const { parts, timed, words } = await startMeeting()
  parts.words = refused(404)
  const early = await timed.ask('transcripts.read')
  parts.words = { body: { data: [{ text: 'new' }] } }
  parts.title = 'Second'
  await (await timed.ask('meetings.detail')).apply()
  await early.apply()
  await timed.drain()
  expect(words()).toEqual(['new'])
})

test('a record without a time of its change is read again when it is announced while it is requested', async () => {
  const world = await startCrm({ deal: { 1: { updated: null, stage: 'new' } } })
  const resources = ['activities', 'crm_objects', 'crm_records'] as const
  const trial = await startTrial(world.api)
  await trial.run(resources)
  const timed = await startTimed(world.api, trial, resources)
  const announce = async (number: number) => {
    world.activities.push(event(number, number, ['deal 1']))
    wantList(timed.context, 'activities.list')
    await (await timed.ask('activities.list')).apply()
  }
  world.records['deal'] = { 1: { updated: null, stage: 'won' } }
  await announce(1)
  const early = await timed.ask('crm_records.list.changed')
  world.records['deal'] = { 1: { updated: null, stage: 'lost' } }
  await announce(2)
  await early.apply()
  await timed.drain()
  expect(trial.column(`SELECT fields ->> 'stage' FROM crm_records WHERE id = '${uuid(1)}'`)).toEqual(['lost'])
})

test('a record that is requested by hint is read again when a second hint arrives meanwhile', async () => {
  const world = await startCrm({ deal: { 1: { updated: -60, stage: 'new' } } })
  const trial = await startTrial(world.api)
  await trial.run(['crm_objects', 'crm_records'])
  const timed = await startTimed(world.api, trial, ['crm_objects', 'crm_records'])
  const hint = () =>
    trial.store.transaction(() =>
      trial.store.tasks.demand({
        feed: 'crm_records.list.changed',
        scope: 'deal',
        key: uuid(1),
        dueAt: timed.context.now(),
      }),
    )
  await hint()
  const early = await timed.ask('crm_records.list.changed')
  world.records['deal'] = { 1: { updated: 1, stage: 'won' } }
  timed.passTime(1000)
  await hint()
  await early.apply()
  await timed.drain()
  expect(trial.column(`SELECT fields ->> 'stage' FROM crm_records WHERE id = '${uuid(1)}'`)).toEqual(['won'])
})
