import { canonicalJson, fieldsOf, type Json } from '../support/exact-json.ts'
import { groupedBy } from '../support/grouped-by.ts'
import { daysBetween, exactDays, mean, median, ordered, sum } from './counting.ts'
import { type CrmRecord, type DemoWarehouse, TODAY, textOf } from './demo-warehouse.ts'
import { ALWAYS, type Expected, minute, quoted, type Recount, text } from './recount.ts'

export const DEAL_RECOUNTS: Readonly<Record<string, Recount>> = {
  'deals-without-activity': { parameters: { today: quoted(TODAY) }, least: 5, expected: quietDeals },
  'time-to-close-by-stage': { parameters: {}, least: 2, expected: timeToClose },
  'stage-changes-last-quarter': {
    parameters: ALWAYS,
    least: 3,
    expected: stageChanges,
  },
  'open-deals-by-stage': { parameters: {}, least: 4, expected: openDeals },
  'deals-where-a-term-was-said': {
    parameters: { since: quoted('2025-07-01'), term: quoted('OTHER vendors') },
    least: 3,
    expected: dealsWithTerm,
  },
  'one-deal': { parameters: {}, least: 3, expected: oneDeal },
  'contacts-not-spoken-to': { parameters: { today: quoted(TODAY) }, least: 10, expected: silentContacts },
  'close-dates-moved': { parameters: ALWAYS, least: 3, expected: movedDates },
}

const stagesOf = (warehouse: DemoWarehouse): Map<unknown, CrmRecord> =>
  new Map(warehouse.records('stage').map(record => [record.id, record]))

const membersOf = (warehouse: DemoWarehouse): Map<unknown, string> =>
  new Map(warehouse.rows('members').map(row => [row['id'], text(row, 'name')]))

const ownerOf = (members: ReadonlyMap<unknown, string>, fields: CrmRecord['fields']): string =>
  members.get(fields['owner_id']) ?? (fields['owner_id'] === null ? 'nobody' : 'not a member now')

interface Activity {
  id: string
  kind: string
  at: string
  source: string
  actor: unknown
  isDirect: boolean
}

/** Activities by the record that they are linked to, from the payloads; each once for a record. */
function activitiesBy(type: string, { after }: DemoWarehouse): Map<string, Activity[]> {
  const linked = after.activities.flatMap(activity =>
    [...linkedTo(type, activity['links'])].map(([record, isDirect]) => ({
      record,
      id: String(activity['id']),
      kind: String(activity['source_type']),
      at: new Date(String(activity['occurred_at'])).toISOString(),
      source: String(activity['source_id']),
      actor: (activity['actor'] as { id?: unknown } | null)?.id,
      isDirect,
    })),
  )
  return groupedBy(linked, ({ record }) => record)
}

/** Ids of the records of one type among links, and whether one of the links is direct. */
function linkedTo(type: string, links: unknown): Map<string, boolean> {
  const records = new Map<string, boolean>()
  for (const { context_type, context_id, origin } of links as Record<string, string>[]) {
    if (context_type !== type || context_id === undefined) continue
    records.set(context_id, (records.get(context_id) ?? false) || origin === 'DIRECT')
  }
  return records
}

const latest = (activities: readonly Activity[]): string | undefined =>
  activities
    .map(({ at }) => at)
    .sort()
    .at(-1)

function quietDeals(warehouse: DemoWarehouse): Expected[] {
  const activities = activitiesBy('deal', warehouse)
  const stages = stagesOf(warehouse)
  const members = membersOf(warehouse)
  const rows = warehouse
    .records('deal')
    .filter(({ fields }) => !fields['is_closed'])
    .map(({ id, created_at, fields }) => {
      const last = latest(activities.get(id) ?? []) ?? null
      const since = last ?? created_at
      return {
        days_quiet: since === null ? null : daysBetween(since, TODAY),
        last_activity: minute(last),
        deal: String(fields['name']),
        stage: String(stages.get(fields['stage_id'])?.fields['name']),
        owner: ownerOf(members, fields),
        amount: amountOf(fields),
        deal_id: id,
      }
    })
    .filter(({ days_quiet }) => days_quiet === null || days_quiet >= 14)
  return ordered(
    rows,
    { by: ({ days_quiet }) => days_quiet, down: true },
    { by: ({ deal }) => deal },
    { by: ({ deal_id }) => deal_id },
  )
}

/** When parley itself saw each deal in another stage, which nothing but the database can tell. */
function seenChanges(warehouse: DemoWarehouse): Map<string, string[]> {
  const changes = warehouse.stored(
    "SELECT record_id, observed_at FROM crm_record_changes WHERE object = 'deal' AND field = 'stage_id'",
  )
  const groups = groupedBy(changes, row => text(row, 'record_id'))
  return new Map([...groups].map(([id, rows]) => [id, rows.map(row => text(row, 'observed_at')).sort()]))
}

function timeToClose(warehouse: DemoWarehouse): Expected[] {
  const activities = activitiesBy('deal', warehouse)
  const stages = stagesOf(warehouse)
  const seen = seenChanges(warehouse)
  const closed = warehouse
    .records('deal')
    .filter(({ fields }) => fields['is_closed'] === true)
    .map(({ id, updated_at, fields }) => {
      const all = activities.get(id) ?? []
      const changes = all.filter(({ kind, isDirect }) => kind === 'OBJECT_CHANGE_EVENT' && isDirect)
      const closedAt = seen.get(id)?.at(-1) ?? latest(changes) ?? updated_at ?? ''
      const [first] = ordered(
        all.filter(({ kind }) => kind === 'MEETING'),
        { by: ({ at }) => at },
      )
      const days = first && first.at <= closedAt ? exactDays(first.at, closedAt) : undefined
      return { stage: stages.get(fields['stage_id']), days, isSeen: seen.has(id) }
    })
  const groups = groupedBy(closed, ({ stage }) => stage?.id ?? '')
  const rows = [...groups].map(([id, all]) => {
    const days = all.flatMap(each => each.days ?? [])
    return {
      id,
      stage: String(all[0]?.stage?.fields['name']),
      deals_closed: all.length,
      closing_seen: all.filter(({ isSeen }) => isSeen).length,
      with_a_meeting_before: days.length,
      median_days: median(days),
      mean_days: mean(days),
      shortest_days: days.length === 0 ? null : Math.min(...days),
      longest_days: days.length === 0 ? null : Math.max(...days),
    }
  })
  return ordered(
    rows,
    { by: row => row.deals_closed, down: true },
    { by: ({ stage }) => stage },
    { by: ({ id }) => id },
  ).map(({ id, ...row }) => row)
}

/** What changed is told by the two states of the source; when it was seen, by the database. */
function stageChanges(warehouse: DemoWarehouse): Expected[] {
  const stages = stagesOf(warehouse)
  const members = membersOf(warehouse)
  const seen = seenChanges(warehouse)
  const stageBefore = new Map(
    warehouse.before.crm_records.map(({ id, fields }) => [
      String(id),
      (fields as Record<string, unknown>)['stage_id'],
    ]),
  )
  const rows = warehouse
    .records('deal')
    .filter(({ id, fields }) => stageBefore.get(id) !== fields['stage_id'])
    .map(({ id, fields }) => {
      const at = seen.get(id)?.at(-1) ?? ''
      return {
        at,
        seen: minute(at),
        deal: String(fields['name']),
        from_stage: String(stages.get(stageBefore.get(id))?.fields['name']),
        to_stage: String(stages.get(fields['stage_id'])?.fields['name']),
        owner: ownerOf(members, fields),
        deal_id: id,
      }
    })
  return ordered(rows, { by: ({ at }) => at }, { by: ({ deal }) => deal }, { by: row => row.deal_id }).map(
    ({ at, ...row }) => row,
  )
}

function dealsWithTerm(warehouse: DemoWarehouse): Expected[] {
  const stages = stagesOf(warehouse)
  const began = new Map(
    warehouse.after.meetings.map(({ meeting_id, start_time }) => [
      String(meeting_id),
      new Date(String(start_time)).toISOString(),
    ]),
  )
  const mentions = new Map(
    warehouse.after.transcripts.map(({ meeting_id, entries }) => {
      const said = (entries as { text: string }[]).filter(({ text: words }) =>
        words.includes('other vendors'),
      )
      return [String(meeting_id), said.length]
    }),
  )
  const activities = activitiesBy('deal', warehouse)
  const rows = warehouse
    .records('deal')
    .filter(({ fields }) => !fields['is_closed'])
    .flatMap(({ id, fields }) => {
      const held = (activities.get(id) ?? []).filter(({ kind }) => kind === 'MEETING')
      const ids = [...new Set(held.map(({ source }) => source))].filter(
        source => (mentions.get(source) ?? 0) > 0 && (began.get(source) ?? '') >= '2025-07-01',
      )
      if (ids.length === 0) return []
      const days = ids.map(source => (began.get(source) ?? '').slice(0, 10)).sort()
      return {
        deal: String(fields['name']),
        stage: String(stages.get(fields['stage_id'])?.fields['name']),
        amount: amountOf(fields),
        meetings: ids.length,
        mentions: ids.reduce((total, source) => total + (mentions.get(source) ?? 0), 0),
        last_said: days.at(-1) ?? null,
        deal_id: id,
      }
    })
  return ordered(rows, { by: ({ amount }) => amount, down: true }, { by: ({ deal }) => deal })
}

function openDeals(warehouse: DemoWarehouse): Expected[] {
  const stages = stagesOf(warehouse)
  const pipelines = new Map(warehouse.records('pipeline').map(record => [record.id, record]))
  const open = warehouse.records('deal').filter(({ fields }) => !fields['is_closed'])
  const groups = groupedBy(open, ({ fields }) => String(fields['stage_id']))
  const rows = [...groups].map(([id, all]) => {
    const stage = stages.get(id)?.fields ?? {}
    const pipeline = pipelines.get(String(all[0]?.fields['pipeline_id']))?.fields ?? {}
    const amounts = all.flatMap(({ fields }) =>
      typeof fields['amount'] === 'number' ? fields['amount'] : [],
    )
    return {
      order: Number(pipeline['position']) * 100 + Number(stage['position']),
      pipeline: String(pipeline['name']),
      stage: String(stage['name']),
      deals: all.length,
      amount: Math.round(sum(amounts)),
      without_amount: all.length - amounts.length,
    }
  })
  return ordered(rows, { by: ({ order }) => order }).map(({ order, ...row }) => row)
}

function oneDeal(warehouse: DemoWarehouse): Expected[] {
  const activities = activitiesBy('deal', warehouse)
  const [newest] = ordered(
    [...activities],
    { by: ([, all]) => latest(all) ?? null, down: true },
    { by: ([id]) => id },
  )
  const rows = [...happened(warehouse, newest?.[1] ?? []), ...changesOf(warehouse, newest?.[0] ?? '')]
  return ordered(rows, { by: ({ at }) => at }, { by: ({ what }) => what }, { by: ({ about }) => about }).map(
    row => ({ ...row, at: minute(row.at) }),
  )
}

interface Told extends Expected {
  at: string
  what: string
  about: string
}

/** Meetings, e-mails and changes of a record, each once, at its earliest. */
function happened(warehouse: DemoWarehouse, activities: readonly Activity[]): Told[] {
  const members = membersOf(warehouse)
  const copies = new Map(warehouse.rows('message_copies').map(row => [row['id'], row]))
  const mails = new Map(warehouse.rows('messages').map(row => [row['header_message_id'], row]))
  const senders = new Map(
    warehouse
      .rows('message_copy_participants')
      .filter(({ role }) => role === 'FROM')
      .map(row => [row['message_id'], text(row, 'display_name') || text(row, 'handle')]),
  )
  const open = warehouse.rows('meetings').filter(({ access }) => access === 'open')
  const meetings = new Map(open.map(row => [row['id'], row]))
  const told = activities.map(activity => {
    const copy = activity.kind === 'MESSAGE' ? copies.get(activity.source) : undefined
    const mail = copy && mails.get(text(copy, 'header_message_id') || `id:${copy['id']}`)
    const meeting = activity.kind === 'MEETING' ? meetings.get(activity.source) : undefined
    const key = text(mail, 'header_message_id') || text(meeting, 'id') || activity.id
    const who =
      senders.get(mail?.['id']) ?? (text(meeting, 'owner_name') || (members.get(activity.actor) ?? ''))
    return { activity, mail, meeting, key, who }
  })
  return [...groupedBy(told, ({ key }) => key).values()].flatMap(group => {
    const [first] = ordered(group, { by: ({ activity }) => activity.at })
    if (!first) return []
    const { activity, mail, meeting, who } = first
    return {
      at: activity.at,
      what: WHAT[activity.kind] ?? '',
      about: text(mail, 'subject') || text(meeting, 'title'),
      who,
      url: textOf(meeting?.['url']),
    }
  })
}

const WHAT: Readonly<Record<string, string>> = {
  MESSAGE: 'e-mail',
  MEETING: 'meeting',
  OBJECT_CHANGE_EVENT: 'change of a record',
}

interface Changed {
  field: string
  old: Json | undefined
  new: Json | undefined
}

/** The fields of a deal that are not as they were, by the two states of the source. */
function changedFields({ before, after }: DemoWarehouse, deal: string): Changed[] {
  const stateIn = ({ crm_records }: DemoWarehouse['after']) =>
    fieldsOf(crm_records.find(({ id }) => id === deal)?.['fields'])
  const [old, now] = [stateIn(before), stateIn(after)]
  return Object.keys({ ...old, ...now })
    .filter(field => canonicalJson(old[field] ?? null) !== canonicalJson(now[field] ?? null))
    .map(field => ({ field, old: old[field], new: now[field] }))
}

const seenAt = (warehouse: DemoWarehouse, deal: string, field: string): string => {
  const change = warehouse
    .stored('SELECT record_id, field, observed_at FROM crm_record_changes')
    .find(row => row['record_id'] === deal && row['field'] === field)
  return text(change, 'observed_at')
}

function changesOf(warehouse: DemoWarehouse, deal: string): Told[] {
  const members = membersOf(warehouse)
  const fields = warehouse.rows('crm_fields').filter(({ object }) => object === 'deal')
  const names = new Map(warehouse.after.crm_records.map(({ id, fields: of }) => [id, fieldsOf(of)['name']]))
  return changedFields(warehouse, deal).map(change => {
    const declared = fields.find(({ name }) => name === change.field)
    const named = (value: Json | undefined): string => {
      const name = declared?.['relation_type'] ? (names.get(value) ?? members.get(value)) : undefined
      if (name !== undefined) return String(name)
      if (value === null || value === undefined) return 'none'
      return Array.isArray(value) ? JSON.stringify(value) : String(value)
    }
    return {
      at: seenAt(warehouse, deal, change.field),
      what: 'change of a field',
      about: `${text(declared, 'label')}: ${named(change.old)} → ${named(change.new)}`,
      who: '',
      url: null,
    }
  })
}

function movedDates(warehouse: DemoWarehouse): Expected[] {
  const stages = stagesOf(warehouse)
  const members = membersOf(warehouse)
  const rows = warehouse
    .records('deal')
    .filter(({ fields }) => !fields['is_closed'])
    .flatMap(({ id, fields }) => {
      const move = changedFields(warehouse, id).find(({ field }) => field === 'close_date')
      if (!move) return []
      const [before, now] = [textOf(move.old), textOf(move.new)]
      return {
        deal: String(fields['name']),
        stage: String(stages.get(fields['stage_id'])?.fields['name']),
        amount: amountOf(fields),
        owner: ownerOf(members, fields),
        times_moved: 1,
        times_put_off: Number(before !== null && now !== null && now > before),
        date_before: before,
        date_now: now,
        days_later: before === null || now === null ? null : daysBetween(before, now),
        last_moved: minute(seenAt(warehouse, id, 'close_date')),
        deal_id: id,
      }
    })
  return ordered(rows, { by: row => row.days_later, down: true }, { by: ({ deal }) => deal })
}

/** Days without a talk, as the day of the test has it. */
const SILENCE = 30

function silentContacts(warehouse: DemoWarehouse): Expected[] {
  const stages = stagesOf(warehouse)
  const contacts = new Map(warehouse.records('contact').map(record => [record.id, record]))
  const deals = new Map(warehouse.records('deal').map(record => [record.id, record]))
  const talks = talksByContact(warehouse)
  const linked = activitiesBy('contact', warehouse)
  const rows = warehouse
    .rows('crm_record_links')
    .filter(({ object, related_object }) => object === 'deal' && related_object === 'contact')
    .flatMap(({ record_id, related_id }) => {
      const [deal, contact] = [deals.get(String(record_id)), contacts.get(String(related_id))]
      if (!deal || !contact || deal.fields['is_closed']) return []
      const spoken = (linked.get(contact.id) ?? []).filter(({ kind }) => kind !== 'OBJECT_CHANGE_EVENT')
      const last = latest(spoken) ?? null
      const days = last === null ? null : daysBetween(last, TODAY)
      const named = (talks.get(contact.id) ?? []).filter(({ at }) => daysBetween(at, TODAY) < SILENCE)
      if (named.length > 0 || (days !== null && days < SILENCE)) return []
      return {
        days_silent: days,
        last_talk: minute(last),
        contact: String(contact.fields['name']),
        deal: String(deal.fields['name']),
        stage: String(stages.get(deal.fields['stage_id'])?.fields['name']),
        amount: amountOf(deal.fields),
        contact_id: contact.id,
        deal_id: deal.id,
      }
    })
  return ordered(
    rows,
    { by: row => row.days_silent, down: true },
    { by: ({ contact }) => contact },
    { by: ({ deal }) => deal },
    { by: ({ contact_id }) => contact_id },
    { by: ({ deal_id }) => deal_id },
  )
}

/** E-mails and meetings in which the API names a contact. */
function talksByContact({ after }: DemoWarehouse): Map<string, { contact: string; at: string }[]> {
  const named = (people: unknown, at: unknown) =>
    (people as { contact_id: string | null }[]).flatMap(({ contact_id }) =>
      contact_id === null ? [] : { contact: contact_id, at: new Date(String(at)).toISOString() },
    )
  const talks = [
    ...after.messages.flatMap(({ participants, received_at }) => named(participants, received_at)),
    ...after.meetings.flatMap(({ attendees, start_time }) => named(attendees, start_time)),
  ]
  return groupedBy(talks, ({ contact }) => contact)
}

const amountOf = (fields: CrmRecord['fields']): number | null =>
  typeof fields['amount'] === 'number' ? fields['amount'] : null
