import { describe, expect, test } from 'vitest'
import { wantList } from '../../src/engine/due/wants.ts'
import { createFreshness } from '../../src/store/rows/freshness.ts'
import {
  numberedPage,
  refused,
  type ScriptedAnswer,
  signal,
  startScriptedApi,
  v1Page,
  v2Page,
} from '../support/scripted-api.ts'
import { API_KEY, message, outcomeOf, startTrial, stateOf, uuid } from './trial-backfill.ts'
import { startTimed } from './trial-timed.ts'

describe('the transaction of a page', () => {
  const activity = (number: number) => ({
    id: uuid(number),
    type: 'meeting',
    source_type: 'MEETING',
    source_id: `m${number}`,
    occurred_at: '2026-03-04T05:06:07Z',
    links: [],
  })

  test('a page, its checkpoint and its tasks are stored together or not at all', async () => {
    const api = await startScriptedApi()
    api.on('/v2/activities', ({ query }) =>
      query['cursor'] === 'second' ? v2Page([activity(3)]) : v2Page([activity(1), activity(2)], 'second'),
    )
    const trial = await startTrial(api)
    const counts = () =>
      trial.all(`SELECT (SELECT count(*) FROM activities) AS rows, (SELECT count(*) FROM sync_tasks) AS tasks,
        (SELECT cursor FROM sync_segments) AS cursor`)[0]
    // A temporary trigger stands for a fault of the program: others in the file are named and end the run.
    trial.store.db.exec(`CREATE TEMP TRIGGER failing BEFORE INSERT ON activities WHEN NEW.source_id = 'm2'
      BEGIN SELECT raise(ABORT, 'as the test says'); END`)
    expect((await trial.run(['activities'])).complete).toBe(false)
    expect(counts()).toEqual({ rows: 0, tasks: 0, cursor: null })

    trial.store.db.exec(`DROP TRIGGER failing; CREATE TEMP TRIGGER failing BEFORE INSERT ON sync_tasks
      WHEN NEW.key = 'm3' BEGIN SELECT raise(ABORT, 'as the test says'); END`)
    expect((await trial.run(['activities'])).complete).toBe(false)
    expect(counts()).toEqual({ rows: 2, tasks: 2, cursor: '{"cursor":"second"}' })

    trial.store.db.exec(`DROP TRIGGER failing; CREATE TEMP TRIGGER failing BEFORE UPDATE ON sync_segments
      WHEN NEW.listed_at IS NOT NULL BEGIN SELECT raise(ABORT, 'as the test says'); END`)
    expect((await trial.run(['activities'])).complete).toBe(false)
    expect(counts()).toEqual({ rows: 2, tasks: 2, cursor: '{"cursor":"second"}' })

    trial.store.db.exec('DROP TRIGGER failing')
    expect((await trial.run(['activities'])).complete).toBe(true)
    expect(counts()).toEqual({ rows: 3, tasks: 3, cursor: null })
  })
})

describe('an older answer that arrives late', () => {
  test('a text that was read before the list does not overwrite the newer list', async () => {
    const api = await startScriptedApi()
    const bodyAsked = signal()
    const listStored = signal()
    const old = message(1, { subject: 'old' })
    const fresh = message(1, { subject: 'fresh' })
    // The second page is in flight while the text of a message on the first page is read.
    const early = message(9, { received_at: '2026-01-01T00:00:00.000Z' })
    let bodies = 0
    api.on('/v2/messages/{id}', async ({ params: [id] }) => {
      if (id === early.id) return { body: { ...early, text: 'early text' } }
      bodies += 1
      if (bodies > 1) return { body: { ...fresh, text: 'fresh text' } }
      bodyAsked.give()
      await listStored.promise
      return { body: { ...old, text: 'old text' } }
    })
    api.on('/v2/messages', async ({ query: { cursor } }) => {
      if (cursor === undefined) return v2Page([old, early], 'second')
      if (cursor === 'second') {
        await bodyAsked.promise
        return v2Page([], 'third')
      }
      return v2Page([fresh])
    })
    const trial = await startTrial(api)
    trial.store.db.function('list_was_stored', () => {
      // After this commit, since the answer in flight can only arrive later.
      setImmediate(() => listStored.give())
      return 0
    })
    trial.store.db.exec(`CREATE TRIGGER seen AFTER UPDATE ON message_copies WHEN NEW.subject = 'fresh'
      BEGIN SELECT list_was_stored(); END`)
    const result = await trial.run(['messages', 'message_bodies'])
    expect(result.complete).toBe(true)
    expect(bodies).toBeGreaterThan(1)
    expect(trial.all('SELECT subject, text FROM messages ORDER BY received_at DESC')[0]).toEqual({
      subject: 'fresh',
      text: 'fresh text',
    })
  })

  test('an answer from before the deletion of a row does not bring it back, and a later one does', async () => {
    const api = await startScriptedApi()
    const members = [{ id: 'a', name: 'Aiko' }]
    api.on('/v1/members', () => numberedPage(members))
    const trial = await startTrial(api)
    expect((await trial.run(['members'])).complete).toBe(true)
    const timed = await startTimed(api, trial, ['members'])
    wantList(timed.context, 'members.list')
    const early = await timed.ask('members.list')
    await trial.store.transaction(() => trial.store.tombstone('members', [['a']], timed.context.now()))
    await early.apply()
    expect(trial.column('SELECT count(*) FROM live_members')).toEqual([0])
    timed.readAgain('members')
    await timed.drain()
    expect(trial.column('SELECT count(*) FROM live_members')).toEqual([1])
  })

  test('the order of the requests decides, and is forgotten when no older one is in flight', () => {
    const freshness = createFreshness()
    const [first, second, third] = [freshness.begin(), freshness.begin(), freshness.begin()]
    expect(freshness.admits(second, 't', 'k')).toBe(true)
    expect(freshness.admits(first, 't', 'k')).toBe(false)
    expect(freshness.admits(first, 't', 'other')).toBe(true)
    expect(freshness.admits(first, 'other', 'k')).toBe(true)
    expect(freshness.admits(third, 't', 'k')).toBe(true)
    expect(freshness.admits(second, 't', 'k')).toBe(false)
    freshness.end(third)
    expect(freshness.admits(second, 't', 'k')).toBe(false)
    freshness.end(second)
    expect(freshness.admits(first, 't', 'k')).toBe(false)
    freshness.end(first)
    expect(freshness.admits(freshness.begin(), 't', 'k')).toBe(true)
  })
})

describe('values that do not fit their column', () => {
  test('a misfit is stored in _extra or sync_rejects, the page is stored, and drift is logged once', async () => {
    const api = await startScriptedApi()
    const odd = Array.from({ length: 50 }, (_, index) => ({
      id: `c${index}`,
      name: index,
      mood: 'secret mood',
      created_at: 'soon',
    }))
    api.on('/v1/collections', () =>
      v1Page([...odd, { name: 'secret without id' }, 7, null, { id: '' }, { id: 5 }]),
    )
    const trial = await startTrial(api)
    expect((await trial.run(['collections'])).complete).toBe(true)
    expect(trial.column('SELECT count(*) FROM collections')).toEqual([50])
    expect(trial.column("SELECT _extra FROM collections WHERE id = 'c7'")).toEqual([
      '{"name":7,"mood":"secret mood","created_at":"soon"}',
    ])
    expect(trial.column('SELECT item FROM sync_rejects ORDER BY item')).toEqual([
      '7',
      'null',
      '{"id":""}',
      '{"id":5}',
      '{"name":"secret without id"}',
    ])
    const drift = trial
      .logged()
      .split('\n')
      .filter(line => line.includes('kept in _extra'))
    const [line = '{}', ...others] = drift
    expect(others).toEqual([])
    expect(JSON.parse(line).fields.split(', ').sort()).toEqual([
      'collections.created_at (unexpected type)',
      'collections.id (unexpected type)',
      'collections.mood',
      'collections.name (unexpected type)',
    ])
    expect(trial.logged()).not.toContain('secret')
  })

  test('a reject is resolved when the item was stored or the list no longer shows it', async () => {
    const api = await startScriptedApi()
    let items: unknown[] = [{ name: 'first' }, { name: 'second' }]
    api.on('/v1/collections', () => v1Page(items))
    const trial = await startTrial(api)
    await trial.run(['collections'])
    trial.moveClock(1000)
    items = [{ name: 'first' }]
    await trial.run(['collections'])
    const open = 'SELECT item FROM sync_rejects WHERE resolved_at IS NULL'
    expect(trial.column(open)).toEqual(['{"name":"first"}'])
    expect(trial.column('SELECT count(*) FROM sync_rejects WHERE last_seen_at > first_seen_at')).toEqual([1])
    expect(trial.column("SELECT rejected FROM sync_status WHERE resource = 'collections'")).toEqual([1])
    items = []
    trial.moveClock(1000)
    await trial.run(['collections'])
    expect(trial.column(open)).toEqual([])
  })

  test('a reject of an item that is not read again stays open', async () => {
    const api = await startScriptedApi()
    const transcript = [{ text: 'words' }, 42]
    api.on('/v1/meetings', () => v1Page([{ meeting_id: 'm' }]))
    api.on('/v1/meetings/{id}', () => ({ body: { data: { meeting_id: 'm' } } }))
    api.on('/v1/meetings/{id}/transcript', () => ({ body: { data: transcript } }))
    const trial = await startTrial(api)
    const chosen = ['activities', 'meetings', 'transcripts'] as const
    await trial.run(chosen)
    trial.moveClock(1000)
    await trial.run(chosen)
    expect(api.asked('/v1/meetings/{id}/transcript')).toHaveLength(1)
    expect(trial.all('SELECT resource, item, resolved_at FROM sync_rejects')).toEqual([
      { resource: 'transcripts', item: '42', resolved_at: null },
    ])
  })

  test('a value that is not a text is kept with all its digits and those of its neighbours', async () => {
    const api = await startScriptedApi()
    api.on('/v2/messages', () => v2Page([message(1)]))
    const body = JSON.stringify({ ...message(1), text: { odd: 1 } })
    api.on('/v2/messages/{id}', () => ({ text: body.replace('{', '{"big":12345678901234567890,') }))
    const trial = await startTrial(api)
    await trial.run(['messages', 'message_bodies'])
    expect(trial.column('SELECT _extra FROM message_copies')).toEqual([
      '{"big":12345678901234567890,"text":{"odd":1}}',
    ])
  })
})

describe('a second run that finds nothing new', () => {
  test('a second run without news writes no row of the warehouse', async () => {
    const api = await startScriptedApi()
    let turn = 0
    /** The same fields in another order every time. */
    const shuffled = (fields: Record<string, unknown>) =>
      Object.fromEntries(turn % 2 === 0 ? Object.entries(fields) : Object.entries(fields).reverse())
    const record = (object: string) => ({
      id: uuid(object.length),
      object,
      visibility: 'workspace',
      fields: shuffled({ a: shuffled({ x: 1, y: 2 }), b: [1] }),
      created_at: null,
      updated_at: null,
      created_by: null,
      updated_by: null,
    })
    api.on('/v1/members', () =>
      numberedPage([shuffled({ id: 'a', name: 'n', odd: shuffled({ x: 1, y: 2 }) })]),
    )
    api.on('/v1/teams', () => numberedPage([{ id: 't', name: 'n', member_ids: ['a'] }]))
    api.on('/v2/messages', () => v2Page([1, 2].map(number => message(number))))
    api.on('/v2/messages/{id}', ({ params: [id] }) => ({
      body: { ...message(id === uuid(1) ? 1 : 2), text: id === uuid(1) ? 'words' : null },
    }))
    api.on('/v1/meetings', () => v1Page([{ meeting_id: 'm' }]))
    api.on('/v1/meetings/{id}', () => ({
      body: {
        data: shuffled({ meeting_id: 'm', overview_status: 'COMPLETED', action_items: [{ id: 'x' }] }),
      },
    }))
    api.on('/v1/meetings/{id}/transcript', () => ({
      body: { data: [shuffled({ text: 'words', elapsed_seconds: 1 })] },
    }))
    api.on('/v1/meetings/{id}/playbook-results', () => ({
      body: { data: [{ id: 'r', talk_point_results: [{ id: 't' }] }] },
    }))
    api.on('/v1/playbooks', () => v1Page([{ id: 'p' }]))
    api.on('/v1/playbooks/{id}', () => ({ body: { data: { id: 'p', talk_points: [{ id: 'tp' }] } } }))
    api.on('/v1/playbooks/{id}/execution-setting', () => ({
      body: { data: shuffled({ mode: 'AUTO', of: 1 }) },
    }))
    api.on('/v2/objects', () => ({ body: [{ name: 'deal' }] }))
    api.on('/v2/objects/{object}', ({ params: [name] }) => ({
      body: { name, fields: [shuffled({ name: 'f', options: shuffled({ x: 1, y: 2 }) })] },
    }))
    api.on('/v2/objects/{object}/records', ({ params: [object = ''] }) => v2Page([record(object)]))
    api.on('/v1/bot-definition', () => ({
      body: { data: shuffled({ name: 'bot', transcription_hints: [{ hint: 'x' }] }) },
    }))
    api.on('/v1/settings/integrations', () => ({ body: { data: shuffled({ crm: 1, chat: 2 }) } }))
    const trial = await startTrial(api)
    const { RESOURCE_NAMES } = await import('../../src/declare/resource-names.ts')
    expect((await trial.run(RESOURCE_NAMES)).complete).toBe(true)
    const tables = trial.column(
      `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sync_*' AND name NOT GLOB '__drizzle*'
         AND name NOT GLOB 'sqlite_*'`,
    )
    trial.store.db.exec('CREATE TABLE writes (name TEXT)')
    for (const table of tables) {
      for (const event of ['INSERT', 'UPDATE', 'DELETE']) {
        trial.store.db.exec(`CREATE TRIGGER "${table}_${event}" AFTER ${event} ON "${table}"
          BEGIN INSERT INTO writes VALUES ('${event} ${table}'); END`)
      }
    }
    turn = 1
    trial.moveClock(60_000)
    const result = await trial.run(RESOURCE_NAMES)
    expect(result.complete).toBe(true)
    expect(trial.column('SELECT name FROM writes')).toEqual([])
    expect(result.resources.reduce((all, { rowsChanged }) => all + rowsChanged, 0)).toBe(0)
  })
})

describe('the transcripts of meetings', () => {
  const chosen = ['activities', 'meetings', 'transcripts'] as const

  test('a stored transcript is deleted only after two empty answers an interval apart', async () => {
    const api = await startScriptedApi()
    let entries: unknown[] = [{ text: 'words' }]
    let title = 'a'
    api.on('/v1/meetings', () => v1Page([{ meeting_id: 'm' }]))
    api.on('/v1/meetings/{id}', () => ({
      body: { data: { meeting_id: 'm', title, overview_status: 'COMPLETED' } },
    }))
    api.on('/v1/meetings/{id}/transcript', () => ({ body: { data: entries } }))
    const trial = await startTrial(api)
    const state = 'SELECT transcript_state FROM meetings'
    await trial.run(chosen)
    expect(trial.column(state)).toEqual(['present'])
    entries = []
    title = 'b'
    await trial.run(chosen)
    expect(trial.column(state)).toEqual(['present'])
    await trial.run(chosen)
    expect(trial.column(state)).toEqual(['present'])
    expect(trial.column('SELECT count(*) FROM transcript_entries')).toEqual([1])
    trial.passTime(25 * 3_600_000)
    await trial.run(chosen)
    expect(trial.column(state)).toEqual(['empty'])
    expect(trial.column('SELECT count(*) FROM transcript_entries')).toEqual([0])
  })

  test('a failed read does not count as an empty answer', async () => {
    const api = await startScriptedApi()
    let answer: ScriptedAnswer = { body: { data: [{ text: 'words' }] } }
    let title = 'a'
    api.on('/v1/meetings', () => v1Page([{ meeting_id: 'm' }]))
    api.on('/v1/meetings/{id}', () => ({
      body: { data: { meeting_id: 'm', title, overview_status: 'COMPLETED' } },
    }))
    api.on('/v1/meetings/{id}/transcript', () => answer)
    const trial = await startTrial(api)
    await trial.run(chosen)
    title = 'b'
    answer = refused(500)
    expect(outcomeOf(await trial.run(chosen), 'transcripts')).toBe('failed')
    answer = { body: { data: [] } }
    await trial.run(chosen)
    expect(trial.column('SELECT transcript_state FROM meetings')).toEqual(['present'])
    expect(trial.column('SELECT count(*) FROM transcript_entries')).toEqual([1])
  })

  test('the transcript of a withheld meeting is not live, and is read when the meeting opens again', async () => {
    const api = await startScriptedApi()
    let open = true
    const meeting = { meeting_id: 'm', overview_status: 'COMPLETED', speakers: [{ speaker_name: 'x' }] }
    api.on('/v1/meetings', () => v1Page([{ meeting_id: 'm' }]))
    api.on('/v1/meetings/{id}', () => (open ? { body: { data: meeting } } : refused(403)))
    api.on('/v1/meetings/{id}/transcript', () =>
      open ? { body: { data: [{ text: 'words' }] } } : refused(403),
    )
    const trial = await startTrial(api)
    const seen =
      'SELECT (SELECT count(*) FROM live_transcript_entries) + (SELECT count(*) FROM live_meeting_speakers) AS n'
    const state = 'SELECT access, transcript_state, _deleted_at FROM meetings'
    await trial.run(chosen)
    expect(trial.column(seen)).toEqual([2])
    open = false
    expect((await trial.run(chosen)).complete).toBe(true)
    expect(trial.all(state)).toEqual([
      { access: 'withheld', transcript_state: 'withheld', _deleted_at: null },
    ])
    expect(trial.column(seen)).toEqual([0])
    open = true
    expect((await trial.run(chosen)).complete).toBe(true)
    expect(trial.all(state)).toEqual([{ access: 'open', transcript_state: 'present', _deleted_at: null }])
    expect(trial.column(seen)).toEqual([2])
    expect(stateOf(trial, 'meetings')).toBe('ok')
  })
})

describe('secrets and content', () => {
  test('neither the key nor any content reaches the log, an error or the sync state', async () => {
    const api = await startScriptedApi()
    const secrets = [
      'Zephyrine',
      'zephyrine@example.com',
      'Whispered subject',
      'Whispered text',
      'Whispered title',
    ]
    const [name, email, subject, text, title] = secrets
    api.on('/v1/members', () =>
      numberedPage([
        { id: 'a', name, email, role: 5 },
        { name, email },
      ]),
    )
    api.on('/v1/teams', () => refused(400, `The key ${API_KEY} is odd`))
    api.on('/v1/collections', () => ({ text: `{"data": "${text}` }))
    api.on('/v2/messages', () =>
      v2Page([message(1, { subject, participants: [{ handle: email, display_name: 7 }] })]),
    )
    api.on('/v2/messages/{id}', () => ({ body: { id: 'another', subject, text } }))
    api.on('/v1/meetings', () => v1Page([{ meeting_id: 'm', title }, { title }]))
    api.on('/v1/meetings/{id}', () => ({ body: { data: { title } } }))
    api.on('/v1/playbooks', () => ({ body: { [text ?? '']: text } }))
    const trial = await startTrial(api)
    const { RESOURCE_NAMES } = await import('../../src/declare/resource-names.ts')
    const result = await trial.run(RESOURCE_NAMES)
    expect(result.complete).toBe(false)
    const said = [
      trial.logged(),
      JSON.stringify(result),
      JSON.stringify(trial.all('SELECT * FROM sync_status')),
      JSON.stringify(trial.all('SELECT * FROM sync_runs')),
      JSON.stringify(trial.all('SELECT * FROM sync_resources')),
      JSON.stringify(trial.all('SELECT * FROM sync_meta')),
    ].join('\n')
    for (const secret of [...secrets, API_KEY]) expect(said).not.toContain(secret)
    expect(said).toContain('role')
    expect(trial.store.db.serialize().includes(API_KEY)).toBe(false)
  })

  test('an error of the program quotes nothing of its input', async () => {
    const api = await startScriptedApi()
    api.on('/v2/messages', () => v2Page([message(1, { subject: 'Whispered subject' })]))
    const trial = await startTrial(api)
    trial.store.db.exec(`CREATE TEMP TRIGGER failing BEFORE INSERT ON message_copies
      BEGIN SELECT raise(ABORT, 'as the test says'); END`)
    const result = await trial.run(['messages'])
    const said = `${trial.logged()} ${JSON.stringify(result)} ${JSON.stringify(trial.all('SELECT * FROM sync_status'))}`
    expect(said).not.toContain('Whispered')
  })

  test('an error of the program fails only its read, and its stack is logged', async () => {
    const api = await startScriptedApi()
    api.on('/v1/members', () => numberedPage([{ id: 'a', name: 'A' }]))
    api.on('/v1/teams', () => numberedPage([{ id: 't', name: 'T' }]))
    const trial = await startTrial(api)
    trial.store.db.exec(`CREATE TEMP TRIGGER failing BEFORE INSERT ON members
      BEGIN SELECT raise(ABORT, 'as the test says'); END`)
    const result = await trial.run(['members', 'teams'])
    expect(result.resources.map(({ resource, outcome }) => [resource, outcome])).toEqual([
      ['members', 'failed'],
      ['teams', 'complete'],
    ])
    const lines = trial
      .logged()
      .split('\n')
      .filter(line => line.includes('"at":['))
    expect(lines.map(line => JSON.parse(line))).toMatchObject([
      {
        level: 'error',
        resource: 'members',
        error: { at: expect.arrayContaining([expect.stringMatching(/^at /)]) },
      },
    ])
  })
})
