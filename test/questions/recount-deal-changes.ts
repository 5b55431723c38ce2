import { canonicalJson, fieldsOf, type Json } from '../support/exact-json.ts'
import { groupedBy } from '../support/grouped-by.ts'
import { daysBetween, ordered } from './counting.ts'
import { type Activity, activitiesBy, amountOf, latest, membersOf, ownerOf, stagesOf } from './deals.ts'
import { type DemoWarehouse, textOf } from './demo-warehouse.ts'
import { ALWAYS, type Expected, minute, type Recount, text } from './recount.ts'

export const DEAL_CHANGE_RECOUNTS: Readonly<Record<string, Recount>> = {
  'one-deal': { parameters: {}, least: 3, expected: oneDeal },
  'close-dates-moved': { parameters: ALWAYS, least: 3, expected: movedDates },
}

function oneDeal(warehouse: DemoWarehouse): Expected[] {
  const activities = activitiesBy('deal', warehouse)
  const published = new Set(warehouse.records('deal').map(({ id }) => id))
  const [newest] = ordered(
    [...activities].filter(([id]) => published.has(id)),
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
    return { activity, copy, mail, meeting, key, who }
  })
  return [...groupedBy(told, ({ key }) => key).values()].flatMap(group => {
    const [first] = ordered(group, { by: ({ activity }) => activity.at })
    if (!first) return []
    const { activity, copy, mail, meeting, who } = first
    return {
      at: activity.at,
      what: activity.kind === 'MESSAGE' && !copy ? 'e-mail, not stored' : (WHAT[activity.kind] ?? ''),
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
