import { createDerivedRows, type Deriving, listsBy, rowsBy, rowsFor } from './derivation.ts'
import { domainOf, isFreeMail, type Side, sideOf, strongestSide } from './sides.ts'

/**
 * Derives people, one for each address, and parties. The party of a person is a member, else a contact, else the
 * address. Each function follows keys of one kind.
 */

/** Contacts, as they were last read: their addresses, names and companies. */
export function createContacts({ prepare, waiting, crm }: Deriving) {
  const rows = createDerivedRows(prepare, {
    table: '_contact_addresses',
    columns: ['contact_id', 'address', 'name', 'company_id'],
    key: ['contact_id'],
    scope: 'contact_id',
  })
  const named = prepare<string>('SELECT person_id FROM people WHERE contact_id = ?').pluck()
  // The party of a member who is a contact too is the member.
  const parties = prepare<string>('SELECT party_id FROM people WHERE contact_id = ?').pluck()
  return (ids: readonly string[]) => {
    const found = crm.contacts === undefined ? [] : rowsFor<Contact>(prepare, crm.contacts, ids)
    const { gone, come } = rows.replace(ids, found)
    for (const { contact_id: id, address } of [...gone, ...come]) {
      waiting.add('person', [address, ...named.all(id)])
      waiting.add('party', [id, ...parties.all(id)])
    }
  }
}

interface Contact {
  contact_id: string
  address: string | null
  name: string | null
  company_id: string | null
}

/** Companies and their domains, as they were last read. */
export function createCompanies({ prepare, waiting, crm }: Deriving) {
  const rows = createDerivedRows(prepare, {
    table: '_company_domains',
    columns: ['company_id', 'domain'],
    key: ['company_id'],
    scope: 'company_id',
  })
  const parties = prepare<string>('SELECT DISTINCT party_id FROM people WHERE domain = ?').pluck()
  return (ids: readonly string[]) => {
    const found = crm.companies === undefined ? [] : rowsFor<Company>(prepare, crm.companies, ids)
    const { gone, come } = rows.replace(ids, found)
    for (const { domain } of [...gone, ...come]) waiting.add('party', parties.all(domain))
  }
}

interface Company {
  company_id: string
  domain: string
}

interface Member {
  id: string
  name: string | null
  address: string
  isMember: 0 | 1
  /** 1 for an address that the member has had, and has exchanged for another. */
  isEarlier: 0 | 1
}

/**
 * Members by each address that they have or had. Of several with one address, the present holder counts, else the last
 * holder. A member who left held the address until then.
 */
const MEMBERS = `SELECT m.id, nullif(trim(m.name), '') AS name, lower(trim(v.email)) AS address, m._deleted_at IS NULL AS isMember,
    lower(trim(v.email)) IS NOT lower(trim(m.email)) AS isEarlier, CASE v.is_member WHEN 1 THEN v.to_at ELSE v.from_at END AS heldUntil
  FROM member_versions v JOIN members m ON m.id = v.member_id WHERE trim(v.email) <> ''
  ORDER BY heldUntil IS NULL, heldUntil, m.id DESC`

interface Appearances {
  person_id: string
  number: number
  first_at: number | null
  last_at: number | null
  named_at: number | null
  contact_at: number | null
  internal_at: number | null
  was_member: 0 | 1
}

/**
 * SQL for when an address appeared first and last within the calendar, and when it last appeared with a
 * name, with a contact and with a flag `is_internal`; and for whether it was a member's when it was last followed.
 */
const appearances = ({ from, to }: Deriving['time']) => `SELECT p.person_id, p._id AS number,
    (SELECT x.happened_ms FROM _conversation_people x WHERE x.person = p._id AND x.happened_ms >= ${from} ORDER BY x.happened_ms LIMIT 1) AS first_at,
    ${last(`happened_ms < ${to}`)} AS last_at, ${last('is_named = 1')} AS named_at, ${last('contact IS NOT NULL')} AS contact_at,
    ${last('is_internal IS NOT NULL')} AS internal_at,
    p.member_id IS NOT NULL OR p.person_id IN (SELECT address FROM _former_addresses) AS was_member
  FROM json_each(:keys) k CROSS JOIN people p ON p.person_id = k.value
  WHERE EXISTS (SELECT 1 FROM _conversation_people x WHERE x.person = p._id)`

function last(condition: string): string {
  return `(SELECT x.happened_ms FROM _conversation_people x WHERE x.person = p._id AND x.${condition} ORDER BY x.happened_ms DESC LIMIT 1)`
}

/** Of several values at one instant the greatest counts, so that the order of reading does not matter. */
const CONTACT_AT = `SELECT max(r.record_id) FROM _conversation_people x JOIN record_activity r ON r._id = x.contact
  WHERE x.person = ? AND x.happened_ms = ?`
const INTERNAL_AT =
  'SELECT max(x.is_internal) FROM _conversation_people x WHERE x.person = ? AND x.happened_ms = ?'
const NAME_AT = `SELECT max(name) FROM (
    SELECT p.display_name AS name FROM _conversation_people x JOIN conversations c ON c._id = x.conversation AND c.kind = 'mail'
      JOIN message_participants p ON p.header_message_id = c.conversation_id AND lower(trim(p.handle)) = :address
      WHERE x.person = :person AND x.happened_ms = :at
    UNION ALL SELECT a.name FROM _conversation_people x JOIN conversations c ON c._id = x.conversation AND c.kind = 'meeting'
      JOIN meeting_attendees a ON a.meeting_id = c.conversation_id AND lower(trim(a.email)) = :address
      WHERE x.person = :person AND x.happened_ms = :at
    UNION ALL SELECT m.owner_name FROM _conversation_people x JOIN conversations c ON c._id = x.conversation AND c.kind = 'meeting'
      JOIN meetings m ON m.id = c.conversation_id AND lower(trim(m.owner_email)) = :address
      WHERE x.person = :person AND x.happened_ms = :at) WHERE trim(name) <> ''`

export function createPeople({ prepare, waiting, domains, time }: Deriving) {
  const rows = createDerivedRows(prepare, {
    table: 'people',
    columns: [
      ...(['person_id', 'party_id', 'name', 'domain', 'side', 'member_id', 'is_member_now'] as const),
      ...(['contact_id', 'first_seen_day', 'last_seen_day'] as const),
    ],
    key: ['person_id'],
    scope: 'person_id',
  })
  /**
   * A purge leaves no address of a former member. The side of that address stays in the conversations that have it, or
   * the e-mails of the member would become those of a customer.
   */
  const formerAddresses = createDerivedRows(prepare, {
    table: '_former_addresses',
    columns: ['address'],
    key: ['address'],
    scope: 'address',
  })
  const contactsAt = `SELECT a.* FROM json_each(:keys) k
    CROSS JOIN _contact_addresses a ON a.address = k.value ORDER BY a.contact_id DESC`
  const contactOf = prepare<Contact>('SELECT * FROM _contact_addresses WHERE contact_id = ?')
  const contactAt = prepare<string | null>(CONTACT_AT).pluck()
  const internalAt = prepare<number | null>(INTERNAL_AT).pluck()
  const nameAt = prepare<string | null>(NAME_AT).pluck()
  const taking =
    'FROM json_each(:keys) k CROSS JOIN people p ON p.person_id = k.value CROSS JOIN _conversation_people x ON x.person = p._id'
  const conversations = `x.conversation ${taking}`
  const records = `r.record ${taking} AND x.has_said = 1 CROSS JOIN _record_conversations r ON r.conversation = x.conversation`
  const dayOf = (at: number | null) => (at === null ? null : (time.dayOf(at)?.day ?? null))
  return (addresses: readonly string[]) => {
    const members = rowsBy(prepare<Member>(MEMBERS).all(), ({ address }) => address)
    const contacts = rowsBy(rowsFor<Contact>(prepare, contactsAt, addresses), ({ address }) => address)
    const seen = rowsBy(
      rowsFor<Appearances>(prepare, appearances(time), addresses),
      ({ person_id }) => person_id,
    )
    const former = new Set(
      addresses.filter(address => !members.has(address) && seen.get(address)?.was_member === 1),
    )
    formerAddresses.replace(
      addresses,
      [...former].map(address => ({ address })),
    )
    const people = addresses.flatMap(address => {
      const [holder, own, found] = [members.get(address), contacts.get(address), seen.get(address)]
      // An earlier address that a contact has may have been a mistake.
      const member = holder?.isEarlier && own ? undefined : holder
      if (!member && !own && !found) return []
      const named = found && found.contact_at !== null ? contactAt.get(found.number, found.contact_at) : null
      const contactId = own?.contact_id ?? named ?? null
      const contact = own ?? (contactId === null ? undefined : contactOf.get(contactId))
      const internal =
        found && found.internal_at !== null ? internalAt.get(found.number, found.internal_at) : null
      const isInternal = internal == null ? null : internal === 1
      const domain = domainOf(address)
      return {
        person_id: address,
        party_id: member?.id ?? contactId ?? address,
        name:
          member?.name ??
          contact?.name ??
          (found && found.named_at !== null
            ? (nameAt.get({ address, person: found.number, at: found.named_at }) ?? null)
            : null),
        domain,
        side: sideOf({ domain, isMember: member !== undefined || former.has(address), isInternal }, domains),
        member_id: member?.id ?? null,
        is_member_now: member?.isMember ?? 0,
        contact_id: contactId,
        first_seen_day: dayOf(found?.first_at ?? null),
        last_seen_day: dayOf(found?.last_at ?? null),
      }
    })
    const { gone, come } = rows.replace(addresses, people)
    waiting.add(
      'party',
      [...gone, ...come].map(({ party_id }) => party_id),
    )
    const before = rowsBy(gone, ({ person_id }) => person_id)
    const differIn = (...columns: ('side' | 'contact_id' | 'party_id')[]) =>
      come.flatMap(row => {
        const known = before.get(row.person_id)
        return columns.some(column => known?.[column] !== row[column]) ? [row.person_id] : []
      })
    waiting.addFrom('conversation', conversations, differIn('side', 'contact_id'))
    waiting.addFrom('record', records, differIn('side', 'party_id'))
  }
}

interface PartyPerson {
  party_id: string
  person_id: string
  name: string | null
  domain: string | null
  side: Side
  first_seen_day: string | null
  last_seen_day: string | null
  contact_id: string | null
}

export function createParties({ prepare }: Pick<Deriving, 'prepare'>) {
  const rows = createDerivedRows(prepare, {
    table: 'parties',
    columns: [
      ...(['party_id', 'name', 'side', 'member_id', 'contact_id', 'company_id', 'company_how'] as const),
      ...(['first_seen_day', 'last_seen_day'] as const),
    ],
    key: ['party_id'],
    scope: 'party_id',
  })
  const people = `SELECT p.party_id, p.person_id, p.name, p.domain, p.side, p.first_seen_day, p.last_seen_day, p.contact_id
    FROM json_each(:keys) k CROSS JOIN people p ON p.party_id = k.value ORDER BY p.last_seen_day, p.person_id`
  const membersOf = `SELECT m.id, nullif(trim(m.name), '') AS name FROM json_each(:keys) k CROSS JOIN members m ON m.id = k.value
    WHERE m._deleted_at IS NULL OR EXISTS (SELECT 1 FROM people p WHERE p.party_id = m.id)`
  const contact = prepare<Contact>('SELECT * FROM _contact_addresses WHERE contact_id = ?')
  const companiesAt = prepare<string>(
    'SELECT company_id FROM _company_domains WHERE domain = ? LIMIT 2',
  ).pluck()
  /** Undefined where several companies have the domain. */
  const companyAt = (domain: string | null) => {
    if (domain === null || isFreeMail(domain)) return undefined
    const [company, ...others] = companiesAt.all(domain)
    return others.length > 0 ? undefined : company
  }
  return (ids: readonly string[]) => {
    const byParty = listsBy(rowsFor<PartyPerson>(prepare, people, ids), ({ party_id }) => party_id)
    const members = rowsBy(rowsFor<Pick<Member, 'id' | 'name'>>(prepare, membersOf, ids), ({ id }) => id)
    const parties = ids.flatMap(id => {
      const [own, member] = [byParty.get(id) ?? [], members.get(id)]
      if (own.length === 0 && !member) return []
      const contactId = own.find(({ contact_id }) => contact_id !== null)?.contact_id ?? null
      const known = contactId === null ? undefined : contact.get(contactId)
      const byDomain = [...new Set(own.flatMap(({ domain }) => companyAt(domain) ?? []))]
      const company = known?.company_id ?? (byDomain.length === 1 ? byDomain[0] : undefined)
      const days = (end: 'first_seen_day' | 'last_seen_day') => own.flatMap(row => row[end] ?? []).sort()
      return {
        party_id: id,
        name: member?.name ?? known?.name ?? own.findLast(({ name }) => name !== null)?.name ?? null,
        side: member ? 'ours' : strongestSide(own.map(({ side }) => side)),
        member_id: member ? id : null,
        contact_id: contactId,
        company_id: company ?? null,
        company_how: company === undefined ? null : known?.company_id ? 'contact' : 'domain',
        first_seen_day: days('first_seen_day')[0] ?? null,
        last_seen_day: days('last_seen_day').at(-1) ?? null,
      }
    })
    rows.replace(ids, parties)
  }
}
