import { expect, test } from 'vitest'
import type { ResourceName } from '../../src/declare/resource-names.ts'
import { message, startTrial } from '../engine/trial-backfill.ts'
import { startTimed } from '../engine/trial-timed.ts'
import { refused, type ScriptedAnswer, startScriptedApi, v1Page, v2Page } from '../support/scripted-api.ts'

/** Parts of rows, and documents, that go or change in the daemon while no list says so. */

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

const ROUTES = {
  meeting: '/v1/meetings/{id}',
  transcript: '/v1/meetings/{id}/transcript',
  results: '/v1/meetings/{id}/playbook-results',
  setting: '/v1/playbooks/{id}/execution-setting',
  bot: '/v1/bot-definition',
} as const

type Part = keyof typeof ROUTES

const RESOURCES: readonly ResourceName[] = [
  'activities',
  'meetings',
  'transcripts',
  'playbooks',
  'playbook_results',
  'bot_definition',
]

/** A daemon that has read a workspace with one thing of each kind; a test may change each answer. */
async function startParts() {
  const api = await startScriptedApi()
  const answers: Record<Part, ScriptedAnswer> = {
    meeting: { body: { data: { meeting_id: 'x', title: 'Kickoff', overview_status: 'COMPLETED' } } },
    transcript: { body: { data: [{ text: 'first words' }] } },
    results: { body: { data: [{ id: 'r', playbook_name: 'Discovery' }] } },
    setting: { body: { mode: 'AUTO' } },
    bot: { body: { data: { name: 'Bot', transcription_hints: [{ hint: 'parley' }] } } },
  }
  api.on('/v1/meetings', () => v1Page([{ meeting_id: 'x' }]))
  api.on('/v1/playbooks', () => v1Page([{ id: 'p' }]))
  api.on('/v1/playbooks/{id}', () => ({ body: { data: { id: 'p', name: 'Discovery', active: true } } }))
  for (const [part, route] of Object.entries(ROUTES)) api.on(route, () => answers[part as Part])
  const trial = await startTrial(api)
  await trial.run(RESOURCES)
  const timed = await startTimed(api, trial, RESOURCES)
  const goOn = async (...waits: readonly number[]) => {
    for (const ms of waits) {
      timed.passTime(ms)
      await timed.drain()
      for (const resource of RESOURCES) await timed.settle(resource)
    }
  }
  return { ...trial, api, answers, goOn }
}

const WORDS = 'SELECT text FROM live_transcript_entries'
const HOURS = [60 * MINUTE, 61 * MINUTE, 61 * MINUTE]

test('a transcript is read again within a week, though its meeting does not change', async () => {
  const { answers, goOn, column } = await startParts()
  expect(column(WORDS)).toEqual(['first words'])
  answers.transcript = { body: { data: [{ text: 'corrected words' }] } }
  await goOn(7 * DAY)
  expect(column(WORDS)).toEqual(['corrected words'])
})

test.each([
  ['withheld', refused(403)],
  ['gone', refused(404)],
  ['empty', { body: { data: [] } }],
] as const)(
  'a transcript that is %s leaves no words after a second answer confirms it, and its meeting stays',
  async (state, answer) => {
    const { answers, goOn, column } = await startParts()
    answers.transcript = answer
    await goOn(7 * DAY, ...HOURS)
    expect(column(WORDS)).toEqual([])
    expect(column('SELECT transcript_state FROM live_meetings')).toEqual([state])
  },
)

test('an execution setting and a bot definition are deleted after two 404s, and come back', async () => {
  const { answers, goOn, column } = await startParts()
  const setting = 'SELECT execution_setting FROM live_playbooks'
  const bot =
    'SELECT (SELECT count(*) FROM live_bot_definition) + (SELECT count(*) FROM live_bot_transcription_hints)'
  const before = { setting: answers.setting, bot: answers.bot }
  expect([column(setting), column(bot)]).toEqual([['{"mode":"AUTO"}'], [2]])
  Object.assign(answers, { setting: refused(404), bot: refused(404) })
  await goOn(8 * DAY, 3 * MINUTE, 3 * MINUTE)
  expect([column(setting), column(bot)]).toEqual([[null], [0]])
  Object.assign(answers, before)
  await goOn(2 * DAY, 8 * DAY)
  expect([column(setting), column(bot)]).toEqual([['{"mode":"AUTO"}'], [2]])
})

test('a document that is suspected right after a resync is not requested again until it can be confirmed', async () => {
  const { api, answers, goOn, store } = await startParts()
  await store.transaction(() => store.resync(['bot_definition'], new Date().toISOString()))
  let denials = 0
  api.on(ROUTES.bot, () => {
    denials += 1
    // Otherwise a daemon that asks again at once would never end.
    return denials < 20 ? refused(404) : answers.bot
  })
  await goOn(1000, 1000, 1000)
  expect(denials).toBe(1)
})

test('a meeting that its list shows stays after 404s, and is read again within the hour', async () => {
  const { answers, goOn, column } = await startParts()
  answers.meeting = refused(404)
  await goOn(7 * DAY, 3 * MINUTE, DAY, DAY, DAY)
  expect(column('SELECT title FROM live_meetings')).toEqual(['Kickoff'])
  answers.meeting = { body: { data: { meeting_id: 'x', title: 'Moved', overview_status: 'COMPLETED' } } }
  await goOn(61 * MINUTE)
  expect(column('SELECT title FROM live_meetings')).toEqual(['Moved'])
})

test('the parts of a meeting that was refused for a while are read again as before', async () => {
  const { answers, goOn, column } = await startParts()
  const { meeting } = answers
  answers.meeting = refused(404)
  await goOn(7 * DAY, 3 * MINUTE)
  answers.meeting = meeting
  await goOn(DAY)
  answers.transcript = { body: { data: [{ text: 'corrected words' }] } }
  answers.results = { body: { data: [{ id: 'r', playbook_name: 'Renamed' }] } }
  await goOn(7 * DAY)
  expect(column(WORDS)).toEqual(['corrected words'])
  expect(column('SELECT playbook_name FROM live_playbook_results')).toEqual(['Renamed'])
})

test('a 404 for a text whose e-mail was deleted after the request was sent is not waited for', async () => {
  const api = await startScriptedApi()
  const [kept, removed] = [message(1), message(2)]
  let listed = [kept, removed]
  api.on('/v2/messages', ({ query }) => {
    const ids = query['ids']?.split(',')
    return v2Page(listed.filter(({ id }) => ids === undefined || ids.includes(id)))
  })
  api.on('/v2/messages/{id}', ({ params: [id] }) => {
    const found = listed.find(one => one.id === id)
    return found ? { body: { ...found, text: `text of ${id}` } } : refused(404)
  })
  const trial = await startTrial(api)
  await trial.run(['messages', 'message_bodies'])
  const timed = await startTimed(api, trial, ['messages', 'message_bodies'])
  const goOn = async (...waits: readonly number[]) => {
    for (const ms of waits) {
      timed.passTime(ms)
      timed.readAgain('messages')
      await timed.drain()
      await timed.settle('messages')
    }
  }
  const textsLeft = () => trial.column("SELECT key FROM sync_tasks WHERE feed = 'message_bodies.read'")
  await trial.store.transaction(() => trial.store.merge.resetText(removed.id))
  listed = [kept]
  const inFlight = await timed.ask('message_bodies.read')
  await goOn(MINUTE, ...HOURS)
  expect(trial.column('SELECT id FROM message_copies WHERE _deleted_at IS NOT NULL')).toEqual([removed.id])
  await inFlight.apply()
  expect(textsLeft()).toEqual([])
  listed = [kept, removed]
  await goOn(MINUTE)
  expect(trial.column('SELECT text FROM live_messages ORDER BY text')).toEqual([
    `text of ${kept.id}`,
    `text of ${removed.id}`,
  ])
})
