import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { putTranscript } from '../store/unique-texts.ts'
import { only, smallWorkspace } from './small-workspace.ts'

const PAGE = readFileSync(new URL('../../drizzle/README.md', import.meta.url), 'utf8')
const MARCH = '2025-03-05T12:00:00Z'

test('a meeting is listed in the order of the talk, chapters before actions of the same time', async () => {
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
  expect(only(await workspace.ask('one-meeting'), 'what', 'chapter', 'about')).toEqual([
    { what: 'point', chapter: 'First', about: 'b' },
    { what: 'point', chapter: 'First', about: 'a' },
    { what: 'action, open', chapter: null, about: 'do' },
    { what: 'point', chapter: 'Second', about: 'c' },
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
  expect(await workspace.ask('mentions-of-a-term-by-month', { term: "'%Term%'" })).toEqual([
    { month: '2025-03', mentions: 2, by_contacts: 1, meetings: 1, meetings_with_transcript: 2, percent: 50 },
    { month: '2025-04', mentions: 0, by_contacts: 0, meetings: 0, meetings_with_transcript: 1, percent: 0 },
  ])
})

test('a meeting of a leaver counts until it is withheld, since nothing says then who attended', async () => {
  const workspace = smallWorkspace()
  workspace.members({ id: 'aiko', name: 'Aiko', email: 'aiko@our.example' })
  const more = {
    meeting_owner: { name: 'Ben', email: 'ben@our.example' },
    attendees: [{ attendee_user_name: 'Cy', attendee_user_email: 'cy@theirs.example', is_internal: false }],
  }
  for (const id of ['open', 'withheld later']) workspace.meeting({ id, at: MARCH, more })
  const ask = () => workspace.ask('meetings-of-leavers')
  expect(only(await ask(), 'address', 'meetings')).toEqual([{ address: 'ben@our.example', meetings: 2 }])
  workspace.store.db.exec("UPDATE meetings SET access = 'withheld' WHERE id = 'withheld later'")
  expect(only(await ask(), 'address', 'meetings')).toEqual([{ address: 'ben@our.example', meetings: 1 }])
})

test('answers count as missing when they are NULL or on the list, whatever their letter case and full stop', async () => {
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
  const ask = () => workspace.ask('playbook-questions-unanswered')
  const budget = { results: 3, unanswered: 3, missing: 0, unanswered_percent: 100 }
  expect(await ask()).toEqual([
    { ...budget, playbook: 'The playbook', question: 'Budget, as asked now?' },
    { ...budget, playbook: 'The playbook', question: 'Added?', results: 2, unanswered: 0, missing: 2 },
  ])
  workspace.tombstone('playbooks', 'p')
  expect(await ask()).toEqual([{ ...budget, playbook: 'Its old name', question: 'budget, as asked then?' }])
})

test('the story of a deal has each e-mail once, its changes, and no withheld title', async () => {
  const workspace = smallWorkspace()
  const day = (number: number) => `2025-03-${String(number).padStart(2, '0')}T12:00:00.000Z`
  workspace.members({ id: 'aiko', name: 'Aiko', email: 'aiko@our.example' })
  const fields = [
    {
      name: 'stage_id',
      label: 'Stage',
      type: 'RELATION',
      relation: { type: 'MANY_TO_ONE', target_object: 'stage' },
    },
    { name: 'amount', label: 'Amount', type: 'NUMBER' },
  ]
  workspace.store.put('crm_objects', [{ name: 'deal', label: 'Deal', fields }], { requested: 'deal' })
  workspace.records('deal', [{ id: 'd', stage_id: 'new', amount: 5 }, { id: 'other' }], day(1))
  workspace.records('deal', [{ id: 'd', stage_id: 'offer', amount: 7 }, { id: 'other' }], day(9))
  const mail = { header: '<1>', people: ['FROM b@theirs.example'], subject: 'Offer' }
  workspace.mail({ id: 'copy 1', at: day(2), ...mail })
  workspace.mail({ id: 'copy 2', at: day(3), ...mail })
  workspace.meeting({ id: 'open', at: day(5) })
  workspace.meeting({ id: 'withheld', at: day(6), access: 'withheld' })
  for (const [source, kind, number] of [
    ['copy 1', 'MESSAGE', 2],
    ['copy 2', 'MESSAGE', 3],
    ['open', 'MEETING', 5],
    ['withheld', 'MEETING', 6],
    ['never listed', 'MESSAGE', 7],
  ] as const)
    workspace.activity({
      id: `of ${source}`,
      kind,
      at: day(number),
      source,
      links: ['deal:d', 'deal:d:DERIVED'],
    })
  const story = await workspace.ask('one-deal')
  expect(only(story, 'happened_at', 'what', 'about', 'stage', 'amount')).toEqual([
    { happened_at: day(1), what: 'first read', about: 'unknown', stage: 'new', amount: 5 },
    { happened_at: day(2), what: 'mail', about: 'Offer', stage: null, amount: null },
    { happened_at: day(5), what: 'meeting', about: 'open', stage: null, amount: null },
    { happened_at: day(6), what: 'meeting', about: null, stage: null, amount: null },
    { happened_at: day(9), what: 'change', about: 'unknown', stage: 'offer', amount: 7 },
  ])
  expect(await workspace.ask('one-deal', { deal: "'d'" })).toEqual(story)
  expect(only(await workspace.ask('one-deal', { deal: "'other'" }), 'what')).toEqual([{ what: 'first read' }])
})

test('the first example of the page finds the e-mails of a member whose address is in other letters', () => {
  const [example = ''] = /^SELECT t\.name AS team, .*?;$/ms.exec(PAGE) ?? []
  const workspace = smallWorkspace()
  workspace.members({ id: 'aiko', name: 'Aiko', email: 'Aiko@Our.example' })
  workspace.store.put('teams', [{ id: 't', name: 'Sales', member_ids: ['aiko'] }])
  workspace.mail({ id: '1', at: new Date().toISOString(), people: ['FROM aiko@our.example'] })
  expect(workspace.store.all(example)).toEqual([{ team: 'Sales', mails: 1 }])
})

test('the answers in a thread are of either side, and what waits has no answer', async () => {
  const workspace = smallWorkspace()
  workspace.members({ id: 'aiko', name: 'Aiko', email: 'aiko@our.example' })
  const mails = [
    ['1', 1, 'b@theirs.example'],
    ['2', 2, 'b@theirs.example'],
    ['3', 4, 'aiko@our.example'],
    ['4', 5, 'b@theirs.example'],
  ] as const
  for (const [id, hour, sender] of mails)
    workspace.mail({
      id,
      thread: 't',
      at: `2025-03-05T0${hour}:00:00.000Z`,
      people: [`FROM ${sender}`, 'CC c@theirs.example'],
      subject: id,
    })
  workspace.mail({ id: '5', thread: 'other', at: MARCH, people: ['FROM c@theirs.example'] })
  const rows = await workspace.ask('response-times-in-thread', { thread: "'t'" })
  expect(only(rows, 'asked_by', 'address', 'hours', 'answered_at', 'subject')).toEqual([
    {
      asked_by: 'theirs',
      address: 'b@theirs.example',
      hours: 3,
      answered_at: '2025-03-05T04:00:00.000Z',
      subject: '1',
    },
    {
      asked_by: 'ours',
      address: 'aiko@our.example',
      hours: 1,
      answered_at: '2025-03-05T05:00:00.000Z',
      subject: '3',
    },
    expect.objectContaining({ asked_by: 'theirs', answered_at: null, subject: '4' }),
  ])
  expect(only(await workspace.ask('response-times-in-thread'), 'address')).toEqual([
    { address: 'c@theirs.example' },
  ])
})

test('a thread that has only a later copy of an e-mail has the answers in it', async () => {
  const workspace = smallWorkspace()
  workspace.members({ id: 'm', email: 'aiko@our.example' })
  const people = ['FROM b@theirs.example', 'TO aiko@our.example']
  workspace.mail({ id: '1', header: '<x>', thread: 'first', at: '2025-03-05T01:00:00.000Z', people })
  workspace.mail({ id: '2', header: '<x>', thread: 'second', at: '2025-03-05T01:00:00.000Z', people })
  const rows = await workspace.ask('response-times-in-thread', { thread: "'second'" })
  expect(only(rows, 'address')).toEqual([{ address: 'b@theirs.example' }])
})

/** A workspace whose CRM has deals with these fields, besides a name, a stage and a close date. */
function workspaceWithDeals(more: readonly { name: string; type: string }[], object = 'deal') {
  const workspace = smallWorkspace()
  const fields = [
    ...['name', 'stage'].map(name => ({ name, type: 'TEXT' })),
    { name: 'close_date', type: 'DATE' },
    ...more,
  ].map(field => ({ ...field, label: field.name, is_active: true }))
  workspace.store.put(
    'crm_objects',
    [{ name: object, label: object, fields, is_custom: object !== 'deal' }],
    {
      requested: object,
    },
  )
  return workspace
}

const FLAGS = ['is_closed', 'is_won'].map(name => ({ name, type: 'BOOLEAN' }))

test('won and lost deals in one stage have a median each', async () => {
  const workspace = workspaceWithDeals(FLAGS)
  const closed = [
    ...[10, 11, 12].map(days => ({ days, is_won: true })),
    ...[13, 14, 15, 16].map(days => ({ days, is_won: false })),
  ]
  for (const { days, is_won } of closed) {
    const id = `d${days}`
    const close_date = `2025-03-${days + 5}`
    workspace.records('deal', [{ id, name: id, stage: 'Closed', close_date, is_closed: true, is_won }])
    workspace.meeting({ id, at: MARCH, more: { related_objects: [{ object_type: 'deal', object_id: id }] } })
  }
  const rows = await workspace.ask('time-to-close-by-stage')
  expect(only(rows, 'stage', 'outcome', 'deals_closed', 'median_days')).toEqual([
    { stage: 'Closed', outcome: 'lost', deals_closed: 4, median_days: 14.5 },
    { stage: 'Closed', outcome: 'won', deals_closed: 3, median_days: 11 },
  ])
})

test('the win rate counts deals of which nothing says whether they are closed', async () => {
  const workspace = workspaceWithDeals([])
  workspace.records('deal', [{ id: 'd', name: 'd', stage: 'Signed', close_date: '2025-03-01' }])
  const rows = await workspace.ask('win-rate')
  expect(only(rows, 'part', 'won', 'lost', 'outcome_unknown')).toEqual([
    { part: 'pipeline', won: 0, lost: 0, outcome_unknown: 1 },
    { part: 'owner', won: 0, lost: 0, outcome_unknown: 1 },
  ])
})

test('a deal that was created and won since Monday has moved, and one that was won before has not', async () => {
  const workspace = workspaceWithDeals(FLAGS)
  const won = { stage: 'Signed', is_closed: true, is_won: true }
  workspace.records('deal', [
    { id: 'new', name: 'new', ...won, created_at: '2025-04-29T00:00:00.000Z' },
    { id: 'old', name: 'old', ...won, created_at: '2025-04-01T00:00:00.000Z' },
  ])
  expect(only(await workspace.ask('pipeline-moved-since-monday'), 'deal')).toEqual([{ deal: 'new' }])
})

test('a deal whose currency alone has changed since Monday has moved', async () => {
  const workspace = workspaceWithDeals([
    { name: 'amount', type: 'NUMBER' },
    { name: 'currency', type: 'TEXT' },
    ...FLAGS,
  ])
  const deal = { id: 'd', name: 'd', stage: 'Talk', amount: 5, is_closed: false }
  workspace.records('deal', [{ ...deal, currency: 'JPY' }], '2025-04-01T00:00:00.000Z')
  workspace.records('deal', [{ ...deal, currency: 'EUR' }])
  expect(only(await workspace.ask('pipeline-moved-since-monday'), 'currency_before', 'currency')).toEqual([
    { currency_before: 'JPY', currency: 'EUR' },
  ])
})

test('a close date that only gets another time of the day has not slipped', async () => {
  const workspace = workspaceWithDeals(FLAGS)
  const deal = { id: 'd', name: 'd', stage: 'Talk', is_closed: false }
  const dates = [
    '2025-06-01T08:00:00Z',
    '2025-06-01T17:00:00Z',
    '2025-07-01T08:00:00Z',
    '2025-06-15T08:00:00Z',
  ]
  for (const [day, close_date] of dates.entries())
    workspace.records('deal', [{ ...deal, close_date }], `2025-04-0${day + 1}T00:00:00.000Z`)
  await workspace.ask('freshness')
  expect(workspace.store.column('SELECT slips FROM deal_facts')).toEqual([1])
})

test('a close date that moves later once a deal is closed has slipped, and deal_changes has the outcome of then', async () => {
  const workspace = workspaceWithDeals(FLAGS)
  const deal = { id: 'd', name: 'd', stage: 'Talk' }
  const states = [
    { close_date: '2025-06-01', is_closed: false },
    { close_date: '2025-06-01', is_closed: true, is_won: false },
    { close_date: '2025-07-01', is_closed: true, is_won: false },
  ]
  for (const [day, state] of states.entries())
    workspace.records('deal', [{ ...deal, ...state }], `2025-04-0${day + 1}T00:00:00.000Z`)
  await workspace.ask('freshness')
  expect(workspace.store.column('SELECT slips FROM deal_facts')).toEqual([1])
  expect(
    workspace.store.all('SELECT outcome_before, outcome FROM deal_changes WHERE days_later > 0'),
  ).toEqual([{ outcome_before: 'lost', outcome: 'lost' }])
})

test('questions about deals follow the object that the settings name', async () => {
  const workspace = workspaceWithDeals(FLAGS, 'renewal')
  workspace.records('renewal', [{ id: 'r', name: 'r', stage: 'Talk', is_closed: false }])
  workspace.mail({ id: '1', at: MARCH, people: ['FROM b@theirs.example', 'TO aiko@our.example'] })
  workspace.activity({ id: 'a', kind: 'MESSAGE', at: MARCH, source: '1', links: ['renewal:r'] })
  const settings = { PARLEY_CRM_DEAL_OBJECT: 'renewal' }
  const rows = await workspace.ask('one-deal', { deal: "'r'" }, settings)
  expect(only(rows, 'what')).toContainEqual({ what: 'mail' })
})
