import { expect, test } from 'vitest'
import { build } from '../store/searchable.ts'
import { putTranscript } from '../store/unique-texts.ts'
import { only, type SmallWorkspace, smallWorkspace } from './small-workspace.ts'

const YEAR = { since: "'2025-01-01'", until: "'2026-01-01'" }
const MARCH = '2025-03-05T12:00:00Z'

const attendee = (name: string, is_internal: boolean | null) => ({ attendee_user_name: name, is_internal })
const speaker = (speaker_name: string, speaker_ratio: number | null) => ({ speaker_name, speaker_ratio })
const OURS = attendee('Aiko', true)
const THEIRS = attendee('Priya', false)

/** Shares in percent, a name on both sides, one that no attendee has, and meetings that say nothing of speakers. */
function talks(): SmallWorkspace {
  const workspace = smallWorkspace()
  const both = [OURS, THEIRS, attendee('Sam', true), attendee('Sam', false), attendee('Kim', null)]
  const speakers = [
    speaker('Aiko', 30),
    speaker('Priya', 50),
    speaker('Sam', 10),
    speaker('Kim', 6),
    speaker('Guest', 4),
    speaker('Silent', null),
  ]
  workspace.meeting({ id: 'a', at: MARCH, more: { attendees: both, speakers } })
  workspace.meeting({
    id: 'b',
    at: MARCH,
    more: { attendees: [OURS, THEIRS], speakers: [speaker('Aiko', 0.5)] },
  })
  workspace.meeting({ id: 'none', at: MARCH, more: { attendees: [OURS, THEIRS], speakers: [] } })
  workspace.meeting({
    id: 'still',
    at: MARCH,
    more: { attendees: [THEIRS], speakers: [speaker('Priya', 0)] },
  })
  const inside = { attendees: [OURS, attendee('Kim', null)], speakers: [speaker('Aiko', 1)] }
  workspace.meeting({ id: 'inside', at: MARCH, more: inside })
  const hidden = { attendees: [OURS, THEIRS], speakers: [speaker('Priya', 1)] }
  workspace.meeting({ id: 'withheld', at: MARCH, access: 'withheld', more: hidden })
  return workspace
}

test('talk percentages are of the meeting’s own sum, and names on both sides count for none', () => {
  const columns = ['meeting', 'speakers', 'ours_percent', 'theirs_percent', 'unknown_percent']
  const workspace = talks()
  const a = { meeting: 'a', speakers: 6, ours_percent: 30, theirs_percent: 50, unknown_percent: 20 }
  const b = { meeting: 'b', speakers: 1, ours_percent: 100, theirs_percent: 0, unknown_percent: 0 }
  const still = {
    meeting: 'still',
    speakers: 1,
    ours_percent: null,
    theirs_percent: null,
    unknown_percent: null,
  }
  expect(only(workspace.ask('talk-ratio-by-meeting', YEAR), ...columns)).toEqual([a, b, still])
  const all = workspace.ask('talk-ratio-by-meeting', { ...YEAR, external_only: '0' })
  expect(only(all, ...columns)).toEqual([a, b, { ...b, meeting: 'inside' }, still])
})

test('an action item is overdue from the day after its due day, unless it is done', () => {
  const workspace = smallWorkspace()
  const item = (id: string, due_date: string | null, completed: boolean | null) => ({
    id,
    text: id,
    due_date,
    completed,
  })
  const items = [
    item('today', '2025-03-10', false),
    item('yesterday', '2025-03-09', false),
    item('unknown', '2025-03-09', null),
    item('done', '2025-03-01', true),
    item('no day', null, false),
  ]
  workspace.meeting({ id: 'b', at: MARCH, more: { action_items: items } })
  workspace.meeting({ id: 'a', at: MARCH, more: { action_items: [item('first', '2025-03-09', false)] } })
  workspace.meeting({ id: 'withheld', at: MARCH, access: 'withheld', more: { action_items: items } })
  const late = workspace.ask('action-items-past-due', { today: "'2025-03-10'", since: "'2025-01-01'" })
  expect(only(late, 'days_late', 'action_item', 'meeting_owner')).toEqual(
    ['first', 'yesterday', 'unknown'].map(action_item => ({
      days_late: 1,
      action_item,
      meeting_owner: 'nobody',
    })),
  )
})

test('internal meetings need no CRM link, unless requested', () => {
  const workspace = smallWorkspace()
  const related = [
    { display_name: 'Zulu', object_id: 'z' },
    { display_name: 'Alpha', object_id: 'a' },
  ]
  workspace.meeting({
    id: 'outside',
    at: MARCH,
    more: { attendees: [OURS, THEIRS], related_objects: related },
  })
  workspace.meeting({ id: 'inside', at: MARCH, more: { attendees: [OURS, attendee('Kim', null)] } })
  const linked = { attendees: [THEIRS], crm_integrations: [{ record_id: '006' }] }
  workspace.meeting({ id: 'linked', at: MARCH, more: linked })
  workspace.meeting({ id: 'withheld', at: MARCH, access: 'withheld', more: { attendees: [THEIRS] } })
  const columns = ['meeting', 'outsiders', 'belongs_to']
  const outside = { meeting: 'outside', outsiders: 1, belongs_to: 'Zulu, Alpha' }
  expect(only(workspace.ask('meetings-without-crm-link', YEAR), ...columns)).toEqual([outside])
  const all = workspace.ask('meetings-without-crm-link', { ...YEAR, external_only: '0' })
  expect(only(all, ...columns)).toEqual([{ meeting: 'inside', outsiders: 0, belongs_to: null }, outside])
})

test('a meeting is listed in the order of the talk, chapters before actions of the same time', () => {
  const workspace = smallWorkspace()
  const summaries = [
    { chapter_title: 'Second', chapter_items: [{ item: 'c', time: 20 }] },
    {
      chapter_title: 'First',
      chapter_items: [
        { item: 'b', time: 10 },
        { item: 'a', time: 10 },
      ],
    },
  ]
  const action_items = [{ id: '1', text: 'do', time: 10, completed: null, due_date: '2025-04-01' }]
  workspace.meeting({ id: 'm', at: MARCH, more: { summaries, action_items } })
  workspace.meeting({ id: 'withheld', at: '2025-04-01T00:00:00Z', access: 'withheld', more: { summaries } })
  expect(only(workspace.ask('one-meeting'), 'what', 'chapter', 'text')).toEqual([
    { what: 'point', chapter: 'First', text: 'b' },
    { what: 'point', chapter: 'First', text: 'a' },
    { what: 'action, open', chapter: null, text: 'do' },
    { what: 'point', chapter: 'Second', text: 'c' },
  ])
})

test('a month without a term has no mentions, and only meetings with a transcript count', async () => {
  const workspace = smallWorkspace()
  const say = (meeting: string, ...said: readonly [text: string, contact: string | null][]) => {
    const entries = said.map(([text, contact_id]) => ({ text, contact_id }))
    workspace.store.atomically(() => putTranscript(workspace.store, meeting, entries))
  }
  workspace.meeting({ id: 'a', at: MARCH })
  workspace.meeting({ id: 'b', at: MARCH })
  workspace.meeting({ id: 'c', at: '2025-04-01T00:00:00Z' })
  workspace.meeting({ id: 'withheld', at: MARCH, access: 'withheld' })
  workspace.meeting({ id: 'unread', at: MARCH })
  say('a', ['The TERM, and the term again', null], ['a term', 'p1'], ['nothing', null])
  say('c', ['nothing', null])
  say('withheld', ['the term', null])
  workspace.store.db.exec("UPDATE meetings SET transcript_state = 'pending' WHERE id = 'unread'")
  await build(workspace.store)
  expect(workspace.ask('mentions-of-a-term-by-month', { ...YEAR, term: "'Term'" })).toEqual([
    { month: '2025-03', mentions: 2, by_contacts: 1, meetings: 1, meetings_with_transcript: 2, percent: 50 },
    { month: '2025-04', mentions: 0, by_contacts: 0, meetings: 0, meetings_with_transcript: 1, percent: 0 },
  ])
})

test('answers count as missing when they are NULL or on the list, whatever their letter case and full stop', () => {
  const workspace = smallWorkspace()
  const point = (id: string, question: string) => ({ id, question })
  const playbook = (updated_at: string) => ({
    id: 'p',
    name: 'The playbook',
    active: true,
    updated_at,
    talk_points: [
      point('budget', 'Budget, as asked now?'),
      point('rivals', 'Rivals?'),
      point('added', 'Added?'),
    ],
  })
  const result = (
    id: string,
    created_at: string,
    ...answers: readonly [point: string, answer: string | null][]
  ) => ({
    id,
    playbook_id: 'p',
    playbook_name: 'Its old name',
    created_at,
    talk_point_results: answers.map(([talk_point_id, answer]) => ({
      id: `${id} ${talk_point_id}`,
      talk_point_id,
      question: `${talk_point_id}, as asked then?`,
      answer,
    })),
  })
  workspace.store.put('playbooks', [playbook('2025-03-06T00:00:00Z')])
  for (const [id, created_at, budget] of [
    ['old', '2025-03-05T00:00:00Z', null],
    ['new', '2025-03-07T00:00:00Z', ' Not Discussed. '],
    ['last', '2025-03-08T00:00:00Z', '不明。'],
  ] as const) {
    workspace.meeting({ id, at: MARCH })
    const answers = result(id, created_at, ['budget', budget], ['rivals', 'None.'])
    workspace.store.put('playbook_results', [answers], { requested: id })
  }
  const ask = () => workspace.ask('playbook-questions-unanswered', { since: "'2025-01-01'" })
  const budget = { results: 3, unanswered: 3, missing: 0, unanswered_percent: 100 }
  expect(ask()).toEqual([
    { ...budget, playbook: 'The playbook', question: 'Budget, as asked now?' },
    { ...budget, playbook: 'The playbook', question: 'Added?', results: 2, unanswered: 0, missing: 2 },
  ])
  workspace.tombstone('playbooks', 'p')
  expect(ask()).toEqual([{ ...budget, playbook: 'Its old name', question: 'budget, as asked then?' }])
})
