import { groupedBy } from '../support/grouped-by.ts'
import { daysBetween, ordered } from './counting.ts'
import { activitiesBy, amountOf, latest, membersOf, ownerOf, stagesOf } from './deals.ts'
import { type DemoWarehouse, TODAY } from './demo-warehouse.ts'
import { type Expected, minute, quoted, type Recount } from './recount.ts'

/** The silence that the question asks for by itself. */
const SILENCE = 30
const SPOKEN_SINCE = '2026-01-01'

export const CONTACT_RECOUNTS: Readonly<Record<string, Recount>> = {
  'contacts-not-spoken-to': { parameters: { today: quoted(TODAY) }, least: 10, expected: silentContacts },
  'deals-with-one-contact': {
    parameters: { since: quoted(SPOKEN_SINCE) },
    least: 3,
    expected: oneContact,
  },
}

function oneContact(warehouse: DemoWarehouse): Expected[] {
  const stages = stagesOf(warehouse)
  const members = membersOf(warehouse)
  const contacts = new Map(warehouse.records('contact').map(record => [record.id, record]))
  const named = contactsBySource(warehouse)
  const activities = activitiesBy('deal', warehouse)
  const links = warehouse
    .rows('crm_record_links')
    .filter(({ related_object }) => related_object === 'contact')
  const rows = warehouse
    .records('deal')
    .filter(({ fields }) => !fields['is_closed'])
    .flatMap(({ id, fields }) => {
      const talks = (activities.get(id) ?? [])
        .filter(({ at, source }) => at >= SPOKEN_SINCE && named.has(source))
        .map(talk => ({ ...talk, people: named.get(talk.source) ?? [] }))
      const [contact, ...others] = new Set(talks.flatMap(({ people }) => people))
      if (contact === undefined || others.length > 0) return []
      return {
        deal: String(fields['name']),
        stage: String(stages.get(fields['stage_id'])?.fields['name']),
        amount: amountOf(fields),
        owner: ownerOf(members, fields),
        contact: String(contacts.get(contact)?.fields['name'] ?? 'contact not published'),
        last_talk: minute(latest(talks)),
        contacts_in_crm: links.filter(({ object, record_id }) => object === 'deal' && record_id === id)
          .length,
        deal_id: id,
      }
    })
  return ordered(rows, { by: ({ amount }) => amount, down: true }, { by: ({ deal }) => deal })
}

/** By the id of an e-mail's copy or of a meeting: the contacts of others that the API names in it, where it does. */
function contactsBySource({ after }: DemoWarehouse): Map<string, string[]> {
  const inMails = groupedBy(after.messages, mailOf)
  const mails = after.messages.map((copy): [string, string[]] => [
    String(copy['id']),
    (inMails.get(mailOf(copy)) ?? []).flatMap(({ participants }) => contactsIn(participants)),
  ])
  const meetings = after.meetings.map(({ meeting_id, attendees }): [string, string[]] => [
    String(meeting_id),
    contactsIn(attendees),
  ])
  return new Map([...mails, ...meetings].filter(([, contacts]) => contacts.length > 0))
}

const mailOf = ({ header_message_id, id }: Record<string, unknown>): string =>
  String(header_message_id || `alone ${id}`)

const contactsIn = (people: unknown): string[] =>
  (people as { contact_id: string | null; is_internal?: boolean }[]).flatMap(({ contact_id, is_internal }) =>
    contact_id === null || is_internal === true ? [] : contact_id,
  )

function silentContacts(warehouse: DemoWarehouse): Expected[] {
  const stages = stagesOf(warehouse)
  const contacts = new Map(warehouse.records('contact').map(record => [record.id, record]))
  const deals = new Map(warehouse.records('deal').map(record => [record.id, record]))
  const talks = talksByContact(warehouse)
  const rows = warehouse
    .rows('crm_record_links')
    .filter(({ object, related_object }) => object === 'deal' && related_object === 'contact')
    .flatMap(({ record_id, related_id }) => {
      const [deal, contact] = [deals.get(String(record_id)), contacts.get(String(related_id))]
      if (!deal || !contact || deal.fields['is_closed']) return []
      const [last = null] = (talks.get(contact.id) ?? [])
        .map(({ at }) => at)
        .sort()
        .reverse()
      const days = last === null ? null : daysBetween(last, TODAY)
      if (days !== null && days < SILENCE) return []
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

/** E-mails and meetings in which the API names a contact, and those whose activities are linked to one. */
function talksByContact(warehouse: DemoWarehouse): Map<string, { contact: string; at: string }[]> {
  const { after } = warehouse
  const named = (people: unknown, at: unknown) =>
    (people as { contact_id: string | null }[]).flatMap(({ contact_id }) =>
      contact_id === null ? [] : { contact: contact_id, at: new Date(String(at)).toISOString() },
    )
  const linked = [...activitiesBy('contact', warehouse)].flatMap(([contact, all]) =>
    all.filter(({ kind }) => kind !== 'OBJECT_CHANGE_EVENT').map(({ at }) => ({ contact, at })),
  )
  const talks = [
    ...linked,
    ...after.messages.flatMap(({ participants, received_at }) => named(participants, received_at)),
    ...after.meetings.flatMap(({ attendees, start_time }) => named(attendees, start_time)),
  ]
  return groupedBy(talks, ({ contact }) => contact)
}
