import { expect, test } from 'vitest'
import { message, startTrial, type Trial, uuid } from '../engine/trial-backfill.ts'
import { refused, type ScriptedAnswer, startScriptedApi, v1Page, v2Page } from '../support/scripted-api.ts'

const DAY = 86_400_000

test('the text of an edited e-mail is deleted after two denials an hour apart, and not before', async () => {
  for (const denial of [refused(404), { body: { ...message(1), text: null } }]) {
    const api = await startScriptedApi()
    let [subject, body]: [string, ScriptedAnswer] = ['First', { body: { ...message(1), text: 'words' } }]
    api.on('/v2/messages', () => v2Page([message(1, { subject })]))
    api.on('/v2/messages/{id}', () => body)
    const trial = await startTrial(api)
    const nightly = () => trial.run(['messages', 'message_bodies'])
    await nightly()
    subject = 'Edited'
    body = denial
    await nightly()
    expect(trial.all('SELECT subject, text FROM live_messages')).toEqual([
      { subject: 'Edited', text: 'words' },
    ])
    trial.passTime(DAY)
    await nightly()
    expect(trial.column('SELECT text FROM live_messages')).toEqual([null])
  }
})

/** A meeting with a transcript and a result, of which a test may take anything away. */
async function startMeeting() {
  const api = await startScriptedApi()
  const parts = new Map<string, ScriptedAnswer>([
    ['detail', { body: { data: { meeting_id: 'x', title: 'x', overview_status: 'COMPLETED' } } }],
    ['transcript', { body: { data: [{ text: 'words' }] } }],
    ['results', { body: { data: [{ id: 'r' }] } }],
  ])
  const answer = (part: string) => () => parts.get(part) ?? refused(404)
  api.on('/v1/meetings', () => v1Page([{ meeting_id: 'x' }]))
  api.on('/v1/meetings/{id}', answer('detail'))
  api.on('/v1/meetings/{id}/transcript', answer('transcript'))
  api.on('/v1/meetings/{id}/playbook-results', answer('results'))
  const trial = await startTrial(api)
  const nights = async (count: number) => {
    for (let night = 0; night < count; night += 1) {
      await trial.run(['meetings', 'transcripts', 'playbook_results'])
      trial.passTime(DAY)
    }
  }
  await nights(1)
  return { trial, parts, nights }
}

const words = (trial: Trial) => trial.column('SELECT text FROM live_transcript_entries')

test('a meeting that opens again without its transcript loses the stored one', async () => {
  for (const without of [refused(404), { body: { data: [] } }]) {
    const { trial, parts, nights } = await startMeeting()
    const open = parts.get('detail') ?? {}
    for (const part of ['detail', 'transcript']) parts.set(part, refused(403))
    await nights(1)
    expect(trial.column('SELECT access FROM meetings')).toEqual(['withheld'])
    parts.set('detail', open).set('transcript', without)
    await nights(3)
    expect(trial.column('SELECT access FROM meetings')).toEqual(['open'])
    expect(words(trial)).toEqual([])
    expect(trial.column('SELECT count(*) FROM transcript_entries')).toEqual([0])
    parts.set('transcript', { body: { data: [{ text: 'there again' }] } })
    await nights(14)
    expect(words(trial)).toEqual(['there again'])
  }
})

test('a transcript that was denied together with its meeting needs two denials after the meeting opens again', async () => {
  const { trial, parts, nights } = await startMeeting()
  const open = parts.get('detail') ?? {}
  for (const part of ['detail', 'transcript']) parts.set(part, refused(403))
  await nights(8)
  expect(trial.column('SELECT access FROM meetings')).toEqual(['withheld'])
  parts.set('detail', open)
  await nights(1)
  expect(words(trial)).toEqual(['words'])
  await nights(1)
  expect(words(trial)).toEqual([])
})

test('results that answer 404 twice while their meeting exists are deleted, and revived when they come back', async () => {
  const { trial, parts, nights } = await startMeeting()
  const results = parts.get('results') ?? {}
  parts.delete('results')
  await nights(1)
  expect(trial.column('SELECT id FROM live_meetings')).toEqual(['x'])
  expect(trial.column('SELECT id FROM live_playbook_results')).toEqual([])
  parts.set('results', results)
  await nights(1)
  expect(trial.column('SELECT id FROM live_playbook_results')).toEqual(['r'])
})

test('a document that the API sends as null is NULL, and a stored one becomes NULL after a second answer', async () => {
  const api = await startScriptedApi()
  const nothing = { body: { data: null } }
  let answer: ScriptedAnswer = nothing
  api.on('/v1/playbooks', () => ({ body: { data: [{ id: 'p' }] } }))
  api.on('/v1/playbooks/{id}', () => ({ body: { data: { id: 'p', name: 'Discovery' } } }))
  api.on('/v1/playbooks/{id}/execution-setting', () => answer)
  api.on('/v1/settings/integrations', () => answer)
  const trial = await startTrial(api)
  const run = async () => {
    expect((await trial.run(['playbooks', 'integrations'])).complete).toBe(true)
    return trial.column(
      'SELECT execution_setting FROM live_playbooks UNION ALL SELECT document FROM live_integrations',
    )
  }
  expect(await run()).toEqual([null, null])
  expect(await run()).toEqual([null, null])
  answer = { body: { data: { mode: 'AUTO' } } }
  expect(await run()).toEqual(['{"mode":"AUTO"}', '{"mode":"AUTO"}'])
  answer = nothing
  const asked = api.asked('/v1/settings/integrations').length
  expect(await run()).toEqual([null, null])
  expect(api.asked('/v1/settings/integrations').length - asked).toBe(2)
  expect(await run()).toEqual([null, null])
})

test('a suspicion that was noted under a clock years ahead delays neither the run nor the deletion', async () => {
  const api = await startScriptedApi()
  const ids = new Set([uuid(1), uuid(2)])
  let bot = { body: { data: { name: 'Bot' } } } as ScriptedAnswer
  api.on('/v1/members', () => ({
    body: {
      data: [...ids].map(id => ({ id, name: id })),
      pagination: { page: 1, limit: 200, total_size: ids.size, total_pages: 1 },
    },
  }))
  api.on('/v1/bot-definition', () => bot)
  const trial = await startTrial(api)
  await trial.run(['members', 'bot_definition'])
  ids.delete(uuid(1))
  bot = refused(404)
  const ahead = new Date(trial.clock.now() + 3000 * DAY).toISOString()
  await trial.store.transaction(() => {
    trial.store.suspicions.note(
      { table: 'members', scope: '', key: uuid(1) },
      { since: ahead, means: 'absent' },
    )
    trial.store.suspicions.note(
      { table: 'bot_definition', scope: '', key: '1' },
      { since: ahead, means: 'absent' },
    )
  })
  const began = trial.clock.now()
  await trial.run(['members', 'bot_definition'])
  expect(trial.column('SELECT id FROM live_members')).toEqual([uuid(2)])
  expect(trial.column('SELECT name FROM live_bot_definition')).toEqual([])
  expect(trial.clock.now() - began).toBeLessThan(DAY)
})

test('a result that is deleted with its meeting is no longer suspected', async () => {
  const { trial } = await startMeeting()
  const { store, clock } = trial
  const now = new Date(clock.now()).toISOString()
  const result = { table: 'playbook_results', scope: '', key: 'r' }
  await store.transaction(() => {
    store.suspicions.note(result, { since: now, means: 'absent' })
    store.tombstone('meetings', [['x']], now)
  })
  expect(trial.column('SELECT id FROM live_playbook_results')).toEqual([])
  expect(store.suspicions.find(result)).toBeUndefined()
})
