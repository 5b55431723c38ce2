import { describe, expect, test } from 'vitest'
import { wantList } from '../../src/engine/due/wants.ts'
import { refused, type ScriptedAnswer, startScriptedApi, v1Page, v2Page } from '../support/scripted-api.ts'
import { message, startTrial, uuid } from './trial-backfill.ts'
import { startTimed } from './trial-timed.ts'

describe('a field that two endpoints show differently', () => {
  test('the difference makes no text due, and the value of the list is kept', async () => {
    const api = await startScriptedApi()
    let listed = message(1)
    api.on('/v2/messages', () => v2Page([listed]))
    api.on('/v2/messages/{id}', () => ({
      body: {
        ...listed,
        subject: 'As the single read shows it',
        thread_id: 7,
        seen: Math.random(),
        text: 'words',
      },
    }))
    const trial = await startTrial(api)
    const { context, drain } = await startTimed(api, trial, ['messages', 'message_bodies'])
    const poll = async () => {
      wantList(context, 'messages.list')
      await drain()
    }
    for (let polls = 0; polls < 4; polls += 1) await poll()
    expect(api.asked('/v2/messages/{id}')).toHaveLength(1)
    expect(trial.all('SELECT subject, thread_id, text FROM messages')).toEqual([
      { subject: 'Subject 1', thread_id: null, text: 'words' },
    ])
    expect(trial.column("SELECT _extra ->> 'seen' FROM message_copies")).toEqual([expect.any(Number)])

    listed = message(1, { subject: 'Changed' })
    await poll()
    expect(api.asked('/v2/messages/{id}')).toHaveLength(2)
    expect(trial.column('SELECT subject FROM messages')).toEqual(['Changed'])
  })

  test('a time that comes and goes makes no text due, and is stored as the list shows it', async () => {
    const api = await startScriptedApi()
    const [dated, undated] = [message(1), message(1, { received_at: null })]
    let listed: typeof dated = dated
    api.on('/v2/messages', () => v2Page([listed]))
    api.on('/v2/messages/{id}', () => ({ body: { ...dated, text: 'words' } }))
    const trial = await startTrial(api)
    const { context, drain } = await startTimed(api, trial, ['messages', 'message_bodies'])
    for (const shown of [dated, undated, dated, undated]) {
      listed = shown
      wantList(context, 'messages.list')
      await drain()
      expect(trial.column('SELECT received_at FROM message_copies')).toEqual([shown.received_at])
    }
    expect(api.asked('/v2/messages/{id}')).toHaveLength(1)
  })

  test('the value of the single read is kept for a message that was deleted and is back', async () => {
    const api = await startScriptedApi()
    api.on('/v2/messages', () => v2Page([message(1)]))
    api.on('/v2/messages/{id}', () => ({ body: { ...message(1), subject: 'There again', text: 'words' } }))
    const trial = await startTrial(api)
    const { context, drain } = await startTimed(api, trial, ['messages', 'message_bodies'])
    await drain()
    const now = context.now()
    await trial.store.transaction(() => {
      trial.store.tombstone('message_copies', [[uuid(1)]], now)
      trial.store.tasks.demand({ feed: 'message_bodies.read', key: uuid(1), dueAt: now })
    })
    await drain()
    expect(trial.all('SELECT subject FROM live_messages')).toEqual([{ subject: 'There again' }])
  })
})

describe('a message that has changed', () => {
  test.each([
    ['once is read again until the answer shows the change', 1, 3],
    ['always keeps its text after three more reads', Number.POSITIVE_INFINITY, 5],
  ])('a message that a lagging replica shows unchanged %s, whatever the scale', async (_, lags, reads) => {
    const api = await startScriptedApi()
    const versions = ['first', 'second'].map(text => ({ ...message(1, { subject: text }), text }))
    let now = 0
    let lagging = 0
    api.on('/v2/messages', () => v2Page([message(1, { subject: versions[now]?.text })]))
    api.on('/v2/messages/{id}', () => {
      const isLagging = now > 0 && lagging < lags
      if (isLagging) lagging += 1
      return { body: versions[isLagging ? 0 : now] }
    })
    const trial = await startTrial(api)
    const { context, drain, passTime } = await startTimed(api, trial, ['messages', 'message_bodies'], {
      intervalScale: 1000,
    })
    await drain()
    now = 1
    wantList(context, 'messages.list')
    await drain()
    for (let minute = 0; minute < 10; minute += 1) {
      passTime(60_000)
      await drain()
    }
    expect(api.asked('/v2/messages/{id}')).toHaveLength(reads)
    const expected = { subject: 'second', text: lags === 1 ? 'second' : 'first' }
    expect(trial.all('SELECT subject, text FROM messages')).toEqual([expected])
  })
})

describe('a link that is signed again for each answer', () => {
  const SIGNED = [
    ['of a meeting', () => ({ recording_link: `https://example.com/${Math.random()}` })],
    [
      'of an attendee',
      () => ({ attendees: [{ attendee_user_name: 'A', avatar: `https://example.com/${Math.random()}` }] }),
    ],
  ] as const

  test.each(SIGNED)('a new signature %s makes no transcript due', async (_, signed) => {
    const api = await startScriptedApi()
    let title = 'Kickoff'
    api.on('/v1/meetings', () => v1Page([{ meeting_id: 'm' }]))
    api.on('/v1/meetings/{id}', () => ({
      body: { data: { meeting_id: 'm', title, overview_status: 'COMPLETED', ...signed() } },
    }))
    api.on('/v1/meetings/{id}/transcript', () => ({ body: { data: [{ text: 'words' }] } }))
    api.on('/v1/meetings/{id}/playbook-results', () => ({ body: { data: [] } }))
    const trial = await startTrial(api)
    const { context, drain } = await startTimed(api, trial, ['meetings', 'transcripts', 'playbook_results'])
    const read = async () => {
      const dueAt = context.now()
      await trial.store.transaction(() =>
        trial.store.tasks.demand({ feed: 'meetings.detail', key: 'm', dueAt }),
      )
      await drain()
    }
    await drain()
    for (let times = 0; times < 3; times += 1) await read()
    expect(api.asked('/v1/meetings/{id}')).toHaveLength(4)
    const first = api.asked('/v1/meetings/{id}/transcript').length
    expect(first).toBe(1)
    expect(api.asked('/v1/meetings/{id}/playbook-results')).toHaveLength(1)

    title = 'Kickoff, second part'
    await read()
    expect(api.asked('/v1/meetings/{id}/transcript')).toHaveLength(2)
    expect(api.asked('/v1/meetings/{id}/playbook-results')).toHaveLength(2)
  })
})

describe('texts that wait', () => {
  /** Many empty texts are due again, and one of them was just read. Then an older e-mail arrives. */
  async function startWaiting() {
    const api = await startScriptedApi()
    const listed = Array.from({ length: 60 }, (_, number) => message(number + 1))
    api.on('/v2/messages', () => v2Page(listed))
    api.on('/v2/messages/{id}', ({ params: [id] }) => ({
      body: { ...listed.find(one => one.id === id), text: null },
    }))
    const trial = await startTrial(api)
    await trial.run(['messages', 'message_bodies'])
    const timed = await startTimed(api, trial, ['messages', 'message_bodies'])
    trial.passTime(40 * 86_400_000)
    await (await timed.ask('message_bodies.read')).apply()
    return { api, trial, timed, listed }
  }

  test('new texts are read soon after they arrive, whatever was waiting before', async () => {
    const { api, trial, timed, listed } = await startWaiting()
    listed.push(message(61), message(62))
    wantList(timed.context, 'messages.list')
    await (await timed.ask('messages.list')).apply()
    trial.passTime(2000)
    const before = api.asked('/v2/messages/{id}').length
    for (let asked = 0; asked < 4; asked += 1) await (await timed.ask('message_bodies.read')).apply()
    const ids = api.asked('/v2/messages/{id}').map(({ params: [id] }) => id)
    expect(ids.slice(before)).toEqual(expect.arrayContaining([uuid(61), uuid(62)]))
  })

  test('new texts take every second turn only, however slow the reads are', async () => {
    const { api, trial, timed, listed } = await startWaiting()
    for (let number = 61; number <= 90; number += 1) listed.push(message(number))
    wantList(timed.context, 'messages.list')
    await (await timed.ask('messages.list')).apply()
    const before = api.asked('/v2/messages/{id}').length
    for (let asked = 0; asked < 10; asked += 1) {
      trial.passTime(2000)
      await (await timed.ask('message_bodies.read')).apply()
    }
    const ids = api.asked('/v2/messages/{id}').map(({ params: [id = ''] }) => id)
    expect(ids.slice(before).filter(id => id > uuid(60))).toHaveLength(5)
  })
})

test('a withheld meeting that a new activity names is read again at once', async () => {
  const api = await startScriptedApi()
  const id = uuid(50)
  const named = (number: number) => ({
    id: uuid(number),
    source_type: 'MEETING',
    source_id: id,
    occurred_at: '2026-01-01T00:00:00Z',
  })
  let activities = [named(1)]
  let answer: ScriptedAnswer = refused(403)
  api.on('/v2/activities', () => v2Page(activities))
  api.on('/v1/meetings', () => v1Page([]))
  api.on('/v1/meetings/{id}', () => answer)
  const trial = await startTrial(api)
  const { context, drain } = await startTimed(api, trial, ['activities', 'meetings'])
  await drain()
  expect(trial.column('SELECT access FROM meetings')).toEqual(['withheld'])

  answer = { body: { data: { meeting_id: id, overview_status: 'COMPLETED' } } }
  activities = [named(2), named(1)]
  wantList(context, 'activities.list')
  await drain()
  expect(trial.column('SELECT access FROM meetings')).toEqual(['open'])
})

describe('a result of a playbook that the list leaves out', () => {
  test('the playbook is read once by its detail, and stays', async () => {
    const api = await startScriptedApi()
    const playbook = (id: string, active: boolean) => ({ id, name: id, active, talk_points: [] })
    const result = (id: string, of: string) => ({ id, playbook_id: of, talk_point_results: [] })
    api.on('/v1/meetings', () => v1Page([{ meeting_id: 'm1' }]))
    api.on('/v1/meetings/{id}', () => ({
      body: { data: { meeting_id: 'm1', overview_status: 'COMPLETED' } },
    }))
    api.on('/v1/meetings/{id}/playbook-results', () => ({
      body: { data: [result('r1', 'listed'), result('r2', 'inactive'), result('r3', 'inactive')] },
    }))
    api.on('/v1/playbooks', () => v1Page([{ id: 'listed' }]))
    api.on('/v1/playbooks/{id}', ({ path }) => {
      const id = path.split('/').at(-1) ?? ''
      return { body: { data: playbook(id, id === 'listed') } }
    })
    const trial = await startTrial(api)
    const { context, drain } = await startTimed(api, trial, ['meetings', 'playbook_results', 'playbooks'])
    await drain()
    wantList(context, 'playbooks.list')
    await drain()
    expect(trial.all('SELECT id, active FROM live_playbooks ORDER BY id')).toEqual([
      { id: 'inactive', active: 0 },
      { id: 'listed', active: 1 },
    ])
  })
})
