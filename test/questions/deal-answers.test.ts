import { expect, test } from 'vitest'
import { build } from '../store/searchable.ts'
import { putTranscript } from '../store/unique-texts.ts'
import { inDuckdb } from './duckdb-answers.ts'
import { questionFiles } from './question-file.ts'
import { only, type SmallWorkspace, smallWorkspace } from './small-workspace.ts'

const day = (number: number, month = 3) =>
  `2025-${String(month).padStart(2, '0')}-${String(number).padStart(2, '0')}T12:00:00.000Z`
const ALWAYS = { since: "'0000'", until: "'9999'" }

/** Three stages of one pipeline. */
function withStages(): SmallWorkspace {
  const workspace = smallWorkspace()
  workspace.members({ id: 'aiko', name: 'Aiko', email: 'aiko@our.example' })
  workspace.records('pipeline', [{ id: 'sales', name: 'Sales', position: 0 }])
  workspace.records('stage', [
    { id: 'new', name: 'New', position: 0 },
    { id: 'offer', name: 'Offer', position: 1 },
    { id: 'won', name: 'Won', position: 2 },
  ])
  return workspace
}

const ASKING_FOR_CLOSED = questionFiles().filter(({ parameters }) => parameters.has('closed_field'))

test('the questions about open and closed deals fail where no deal has the field that says so', async () => {
  const workspace = withStages()
  workspace.records('deal', [{ id: 'd', stage_id: 'new', closed: null }])
  await build(workspace.store)
  const askDuckdb = await inDuckdb(workspace)
  const text = 'No deal has the field is_closed: set closed_field or closed_stages'
  for (const { name } of ASKING_FOR_CLOSED) {
    expect(() => workspace.ask(name)).toThrow(text)
    await expect(askDuckdb(name)).rejects.toThrow(text)
    for (const known of [{ closed_field: "'closed'" }, { closed_stages: `'["Won"]'` }]) {
      expect(await askDuckdb(name, known)).toEqual(workspace.ask(name, known))
    }
  }
})

test('a contact of an open deal is silent when no e-mail, meeting or activity names it for that long', () => {
  const workspace = withStages()
  workspace.records('deal', [
    { id: 'open', stage_id: 'new', amount: 5 },
    { id: 'done', is_closed: true },
  ])
  const contacts = [
    'silent',
    'named later',
    'met later',
    'never',
    'in mail',
    'in meeting',
    'in activity',
    'of done',
  ]
  workspace.records(
    'contact',
    contacts.map(id => ({ id, name: `Name of ${id}` })),
  )
  const link = workspace.store.db.prepare("INSERT INTO crm_record_links VALUES ('deal', ?, 'contact', ?)")
  for (const contact of contacts) link.run(contact === 'of done' ? 'done' : 'open', contact)
  const spoken = (contact: string, number: number, kind: 'MEETING' | 'OBJECT_CHANGE_EVENT') =>
    workspace.activity({ id: `${contact} ${number}`, kind, at: day(number), links: [`contact:${contact}`] })
  for (const contact of ['silent', 'in mail', 'in meeting', 'in activity']) spoken(contact, 1, 'MEETING')
  spoken('in activity', 2, 'MEETING')
  spoken('silent', 29, 'OBJECT_CHANGE_EVENT')
  workspace.mail({ id: 'm', at: day(2), people: ['FROM a@our.example', 'CC b@theirs.example in-mail'] })
  workspace.mail({ id: 'old', at: day(1), people: ['FROM c@theirs.example silent'] })
  for (const contact of ['named later', 'met later'])
    workspace.activity({ id: contact, kind: 'MESSAGE', at: day(1, 1), links: [`contact:${contact}`] })
  workspace.mail({
    id: 'named',
    at: day(20, 2),
    people: ['FROM d@our.example', 'TO d@theirs.example named-later'],
  })
  workspace.meeting({ id: 'met', at: day(10, 2), more: { attendees: [{ contact_id: 'met later' }] } })
  workspace.store.db.exec("UPDATE message_copy_participants SET contact_id = replace(contact_id, '-', ' ')")
  workspace.meeting({ id: 'm', at: day(2), more: { attendees: [{ contact_id: 'in meeting' }] } })
  const row = { deal: 'open', stage: 'New', amount: 5, deal_id: 'open' }
  expect(workspace.ask('contacts-not-spoken-to', { today: "'2025-03-31'" })).toEqual([
    {
      ...row,
      days_silent: 49,
      last_talk: '2025-02-10T12:00',
      contact: 'Name of met later',
      contact_id: 'met later',
    },
    {
      ...row,
      days_silent: 39,
      last_talk: '2025-02-20T12:00',
      contact: 'Name of named later',
      contact_id: 'named later',
    },
    {
      ...row,
      days_silent: 30,
      last_talk: '2025-03-01T12:00',
      contact: 'Name of silent',
      contact_id: 'silent',
    },
    { ...row, days_silent: null, last_talk: null, contact: 'Name of never', contact_id: 'never' },
  ])
})

test('a deal depends on one contact when all its recent activity was with that contact', () => {
  const workspace = withStages()
  const ids = ['alone', 'copied', 'two', 'earlier', 'silent', 'closed']
  workspace.records(
    'deal',
    ids.map(id => ({ id, stage_id: 'new', amount: id.length, is_closed: id === 'closed' })),
  )
  workspace.records('contact', [{ id: 'p1', name: 'Priya' }, { id: 'p2' }])
  const link = workspace.store.db.prepare("INSERT INTO crm_record_links VALUES ('deal', ?, 'contact', ?)")
  for (const contact of ['p1', 'p2']) link.run('alone', contact)
  workspace.store.db.exec("INSERT INTO crm_record_links VALUES ('deal', 'alone', 'company', 'c')")
  let number = 0
  const talk = (deal: string, at: string, kind: 'MESSAGE' | 'MEETING', ...contacts: readonly string[]) => {
    number += 1
    const source = `${number}`
    if (kind === 'MESSAGE')
      workspace.mail({ id: source, at, people: contacts.map(id => `TO ${id}@x.example ${id}`) })
    const ours = { contact_id: 'p2', is_internal: true }
    const attendees = [ours, ...contacts.map(contact_id => ({ contact_id, is_internal: false }))]
    if (kind === 'MEETING') workspace.meeting({ id: source, at, more: { attendees } })
    workspace.activity({
      id: `of ${source}`,
      kind,
      at,
      source,
      links: [`deal:${deal}`, `deal:${deal}:DERIVED`],
    })
  }
  talk('alone', day(1), 'MESSAGE', 'p1')
  // Another copy of the e-mail names somebody else.
  talk('copied', day(1), 'MESSAGE', 'p1')
  workspace.mail({ id: 'copy', header: `<${number}>`, at: day(1), people: ['TO x@x.example p2'] })
  talk('alone', day(2), 'MEETING', 'p1')
  talk('two', day(1), 'MESSAGE', 'p1')
  talk('two', day(2), 'MEETING', 'p2')
  talk('earlier', day(1, 2), 'MEETING', 'p2')
  talk('earlier', day(1), 'MESSAGE', 'p1')
  talk('silent', day(1), 'MEETING')
  talk('closed', day(1), 'MESSAGE', 'p1')
  const row = { stage: 'New', owner: 'nobody', contact: 'Priya' }
  expect(workspace.ask('deals-with-one-contact', { since: "'2025-03-01'" })).toEqual([
    {
      ...row,
      deal: 'earlier',
      amount: 7,
      last_talk: '2025-03-01T12:00',
      contacts_in_crm: 0,
      deal_id: 'earlier',
    },
    { ...row, deal: 'alone', amount: 5, last_talk: '2025-03-02T12:00', contacts_in_crm: 2, deal_id: 'alone' },
  ])
})

test('each move of a close date counts, and the days are from the first date to the current one', () => {
  const workspace = withStages()
  const move = (id: string, number: number, close_date: string | null, more: object = {}) =>
    workspace.records('deal', [{ id, close_date, ...more }], day(number))
  move('twice', 1, '2025-04-01')
  move('twice', 2, '2025-05-01')
  move('twice', 3, '2025-04-11')
  move('none', 1, null)
  move('none', 2, '2025-04-01')
  move('earlier', 1, '2025-04-10T00:00:00Z')
  move('earlier', 2, '2025-04-01T00:00:00Z')
  move('same', 1, '2025-04-01')
  move('same', 2, '2025-04-01', { next_step: 'call' })
  move('closed', 1, '2025-04-01')
  move('closed', 2, '2025-05-01', { is_closed: true })
  const columns = ['deal', 'times_moved', 'times_put_off', 'date_before', 'date_now', 'days_later']
  expect(only(workspace.ask('close-dates-moved', ALWAYS), ...columns)).toEqual(
    [
      ['twice', 2, 1, '2025-04-01', '2025-04-11', 10],
      ['earlier', 1, 0, '2025-04-10', '2025-04-01', -9],
      ['none', 1, 0, null, '2025-04-01', null],
    ].map(cells => Object.fromEntries(cells.map((cell, place) => [columns[place], cell]))),
  )
  const later = { since: `'${day(3)}'`, until: "'9999'" }
  expect(only(workspace.ask('close-dates-moved', later), 'deal', 'times_moved', 'date_before')).toEqual([
    { deal: 'twice', times_moved: 1, date_before: '2025-05-01' },
  ])
})

test('a change of stage has the names of published stages, and the ids of others', () => {
  const workspace = withStages()
  for (const [number, stage_id] of ['new', 'gone', null, 'won'].entries()) {
    workspace.records('deal', [{ id: 'd', stage_id, owner_id: 'left' }], day(number + 1))
  }
  workspace.records('contact', [{ id: 'd', stage_id: 'new' }], day(1))
  workspace.records('contact', [{ id: 'd', stage_id: 'won' }], day(2))
  const columns = ['seen', 'from_stage', 'to_stage', 'owner']
  expect(only(workspace.ask('stage-changes-last-quarter', ALWAYS), ...columns)).toEqual([
    { seen: '2025-03-02T12:00', from_stage: 'New', to_stage: 'gone', owner: 'not a member now' },
    { seen: '2025-03-03T12:00', from_stage: 'gone', to_stage: 'none', owner: 'not a member now' },
    { seen: '2025-03-04T12:00', from_stage: 'none', to_stage: 'Won', owner: 'not a member now' },
  ])
})

test('the time to the close ends at the stated day, else at the last seen change of stage, else at the last change of the record', () => {
  const workspace = withStages()
  const closed = { is_closed: true, stage_id: 'won' }
  const met = (deal: string, number: number, month = 3) =>
    workspace.activity({
      id: `${deal} ${number}`,
      kind: 'MEETING',
      at: day(number, month),
      links: [`deal:${deal}`],
    })
  // Closed, opened again and closed for good.
  for (const [number, stage_id] of ['new', 'won', 'offer', 'won'].entries()) {
    workspace.records('deal', [{ id: 'again', ...closed, stage_id }], day(number * 2 + 2))
  }
  met('again', 1)
  met('again', 3)
  workspace.records('deal', [
    { id: 'told', ...closed },
    { id: 'untold', ...closed, updated_at: day(3) },
    { id: 'late', ...closed, updated_at: day(3) },
    { id: 'never', ...closed, updated_at: day(3) },
    { id: 'stated', ...closed, closed_on: '2025-03-01', updated_at: day(9) },
    { id: 'open', stage_id: 'won', updated_at: day(9) },
  ])
  for (const deal of ['told', 'untold', 'stated', 'open']) met(deal, 1)
  met('late', 9)
  const change = (number: number, origin: string) =>
    workspace.activity({
      id: `c${number}`,
      kind: 'OBJECT_CHANGE_EVENT',
      at: day(number),
      links: [`deal:told:${origin}`],
    })
  change(4, 'DIRECT')
  change(5, 'DIRECT')
  change(20, 'DERIVED')
  const row = { stage: 'Won', deals_closed: 6, closing_seen: 1, with_a_meeting_before: 4 }
  expect(workspace.ask('time-to-close-by-stage')).toEqual([
    { ...row, median_days: 5.5, mean_days: 5.3, shortest_days: 2, longest_days: 8 },
  ])
  // The meeting was on that very day.
  expect(workspace.ask('time-to-close-by-stage', { closed_at_field: "'closed_on'" })).toEqual([
    { ...row, closing_seen: 1, median_days: 3, mean_days: 3.3, shortest_days: 0, longest_days: 7 },
  ])
})

test('a meeting that is linked to a deal twice counts once, and amounts are sorted whatever their type', async () => {
  const workspace = withStages()
  workspace.records('deal', [
    { id: 'large', stage_id: 'new', amount: '9000' },
    { id: 'largest', amount: 10000 },
    { id: 'none', amount: null },
    { id: 'closed', amount: 1, is_closed: true },
  ])
  const deals = ['large', 'largest', 'none', 'closed']
  const links = deals.flatMap(deal => [`deal:${deal}`, `deal:${deal}:DERIVED`])
  for (const number of [1, 2, 3]) {
    const id = `m${number}`
    workspace.meeting({ id, at: day(number) })
    for (const copy of ['a', 'b'])
      workspace.activity({ id: `${id} ${copy}`, kind: 'MEETING', at: day(1), source: id, links })
    const entries = [{ text: 'other vendors' }, { text: 'OTHER vendors' }]
    workspace.store.atomically(() => putTranscript(workspace.store, id, entries))
  }
  workspace.store.db.exec("UPDATE meetings SET access = 'withheld' WHERE id = 'm3'")
  await build(workspace.store)
  const columns = ['deal', 'stage', 'amount', 'meetings', 'mentions', 'last_said']
  const answer = workspace.ask('deals-where-a-term-was-said', { since: "'2025-01-01'" })
  expect(only(answer, ...columns)).toEqual(
    [
      ['largest', 'stage not known', 10000],
      ['large', 'New', '9000'],
      ['none', 'stage not known', null],
    ].map(([deal, stage, amount]) => ({
      deal,
      stage,
      amount,
      meetings: 2,
      mentions: 4,
      last_said: '2025-03-02',
    })),
  )
})

test('the story of a deal has each e-mail once, names for its references, and no withheld title', () => {
  const workspace = withStages()
  const relation = (name: string, label: string, target_object: string) => ({
    name,
    label,
    type: 'RELATION',
    relation: { type: 'MANY_TO_ONE', target_object },
  })
  const fields = [relation('stage_id', 'Stage', 'stage'), relation('owner_id', 'Owner', 'member')]
  workspace.store.put('crm_objects', [{ name: 'deal', label: 'Deal', fields }], { requested: 'deal' })
  workspace.records('deal', [{ id: 'd', stage_id: 'new', owner_id: 'left', note: null, tags: ['a'] }], day(1))
  workspace.records('deal', [{ id: 'd', stage_id: 'won', owner_id: 'aiko', note: 'Call', tags: [] }], day(9))
  const mail = { header: '<1>', people: ['FROM b@theirs.example'], subject: 'Offer' }
  workspace.mail({ id: 'copy 1', at: day(2), ...mail })
  workspace.mail({ id: 'copy 2', at: day(3), ...mail })
  workspace.mail({ id: 'gone', at: day(4), people: [] })
  workspace.mail({ id: 'own key', header: '', at: day(8), people: [], subject: 'Alone' })
  workspace.tombstone('message_copies', 'gone')
  workspace.meeting({ id: 'open', at: day(5), more: { meeting_owner: { name: 'Aiko' } } })
  workspace.meeting({
    id: 'withheld',
    at: day(6),
    access: 'withheld',
    more: { meeting_owner: { name: 'Aiko' } },
  })
  const happen = (source: string, kind: 'MESSAGE' | 'MEETING' | 'OBJECT_CHANGE_EVENT', number: number) =>
    workspace.activity({
      id: `of ${source}`,
      kind,
      at: day(number),
      source,
      links: ['deal:d', 'deal:d:DERIVED'],
    })
  happen('copy 1', 'MESSAGE', 2)
  happen('copy 2', 'MESSAGE', 3)
  happen('gone', 'MESSAGE', 4)
  happen('own key', 'MESSAGE', 8)
  happen('open', 'MEETING', 5)
  happen('withheld', 'MEETING', 6)
  happen('record', 'OBJECT_CHANGE_EVENT', 7)
  happen('never listed', 'MESSAGE', 7)
  workspace.records('deal', [{ id: 'other', note: 'a' }], day(1))
  workspace.records('deal', [{ id: 'other', note: 'b' }], day(2))
  workspace.activity({ id: 'of other', kind: 'OBJECT_CHANGE_EVENT', at: day(2), links: ['deal:other'] })
  const story = only(workspace.ask('one-deal'), 'at', 'what', 'about', 'who')
  expect(story).toEqual(
    [
      [2, 'e-mail', 'Offer', 'b@theirs.example'],
      [4, 'e-mail, not stored', '', ''],
      [5, 'meeting', 'open', 'Aiko'],
      [6, 'meeting', '', ''],
      [7, 'change of a record', '', ''],
      [7, 'e-mail, not stored', '', ''],
      [8, 'e-mail', 'Alone', ''],
      [9, 'change of a field', 'Owner: left → Aiko', ''],
      [9, 'change of a field', 'Stage: New → Won', ''],
      [9, 'change of a field', 'note: none → Call', ''],
      [9, 'change of a field', 'tags: ["a"] → []', ''],
    ].map(([number, what, about, who]) => ({ at: `2025-03-0${number}T12:00`, what, about, who })),
  )
  workspace.tombstone('crm_records', 'deal', 'd')
  expect(workspace.ask('one-deal', { deal: "'d'" })).toEqual([])
  expect(only(workspace.ask('one-deal'), 'about')).toEqual([{ about: 'note: a → b' }, { about: '' }])
})
