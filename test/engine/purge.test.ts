import { describe, expect, test } from 'vitest'
import type { ResourceName } from '../../src/declare/resource-names.ts'
import { refused, startScriptedApi, v1Page, v2Page } from '../support/scripted-api.ts'
import { message, startTrial, type Trial, uuid } from './trial-backfill.ts'

const AFTER_ALL = '2100-01-01T00:00:00.000Z'

function purgeAll(trial: Trial): Promise<unknown> {
  return trial.store.transaction(() =>
    trial.store.purger.purge({ before: AFTER_ALL, limit: 1000, now: AFTER_ALL }),
  )
}

describe('a meeting whose content was purged', () => {
  const MEETINGS: readonly ResourceName[] = ['meetings', 'transcripts', 'playbook_results']
  const state = 'SELECT access, title, transcript_state, _deleted_at IS NULL AS live FROM meetings'
  const parts = `SELECT (SELECT count(*) FROM live_transcript_entries) AS entries,
    (SELECT count(*) FROM live_talk_point_results) AS answers, (SELECT count(*) FROM live_meeting_speakers) AS speakers`

  async function startMeeting() {
    const api = await startScriptedApi()
    const published = { status: 200 }
    const meeting = {
      meeting_id: 'm',
      title: 'title',
      overview_status: 'COMPLETED',
      speakers: [{ speaker_name: 'x' }],
    }
    const result = { id: 'r', playbook_name: 'p', talk_point_results: [{ id: 'a', answer: 'yes' }] }
    const answer = (data: unknown) => () =>
      published.status === 200 ? { body: { data } } : refused(published.status)
    api.on('/v1/meetings', () => v1Page(published.status === 404 ? [] : [{ meeting_id: 'm' }]))
    api.on('/v1/meetings/{id}', answer(meeting))
    api.on('/v1/meetings/{id}/transcript', answer([{ text: 'words' }]))
    api.on('/v1/meetings/{id}/playbook-results', answer([result]))
    return { api, trial: await startTrial(api), published }
  }

  test.each([
    [403, { access: 'withheld', title: null, transcript_state: 'withheld', live: 1 }],
    [404, { access: 'open', title: null, transcript_state: 'pending', live: 0 }],
  ])(
    'the meeting stays purged after %i, and has its content when it is open again',
    async (status, purged) => {
      const { trial, published } = await startMeeting()
      await trial.run(MEETINGS)
      const [full] = trial.all(state)
      expect(full).toEqual({ access: 'open', title: 'title', transcript_state: 'present', live: 1 })
      published.status = status
      await trial.run(MEETINGS)
      await purgeAll(trial)
      expect(trial.all(state)).toEqual([purged])
      await trial.run(MEETINGS)
      expect(trial.all(state)).toEqual([purged])
      expect(trial.column('SELECT count(*) FROM transcript_entries')).toEqual([0])
      expect(trial.column('SELECT count(*) FROM talk_point_results')).toEqual([0])
      published.status = 200
      await trial.run(MEETINGS)
      expect(trial.all(state)).toEqual([full])
      expect(trial.all(parts)).toEqual([{ entries: 1, answers: 1, speakers: 1 }])
      expect(trial.column('SELECT count(*) FROM sync_purge_queue')).toEqual([0])
    },
  )
})

describe('an e-mail whose content was purged', () => {
  const MESSAGES: readonly ResourceName[] = ['messages', 'message_bodies']

  test.each([
    ['a text', 'text'],
    ['no text, so that reading it was put off', null],
  ])('an e-mail that had %s is read again when it comes back', async (_had, text) => {
    const api = await startScriptedApi()
    let isListed = true
    let body: string | null = text
    const reads = () => trial.column("SELECT text_state || coalesce(text, '') FROM messages")
    const listed = message(1, {
      subject: 'subject',
      participants: [{ handle: 'a@example.com', role: 'FROM' }],
    })
    api.on('/v2/messages', () => v2Page(isListed ? [listed] : []))
    api.on('/v2/messages/{id}', () => (isListed ? { body: { ...listed, text: body } } : refused(404)))
    const trial = await startTrial(api)
    await trial.run(MESSAGES)
    isListed = false
    await trial.run(MESSAGES)
    expect(trial.column('SELECT id FROM live_messages')).toEqual([])
    await purgeAll(trial)
    await trial.run(MESSAGES)
    expect(reads()).toEqual(['pending'])
    isListed = true
    body = 'text'
    await trial.run(MESSAGES)
    expect(reads()).toEqual(['presenttext'])
    expect(trial.column('SELECT subject FROM live_messages')).toEqual(['subject'])
    expect(trial.column('SELECT message_id FROM message_copy_participants')).toEqual([uuid(1)])
  })
})
