import { mailBody, mailSubject } from '../content/mail.ts'
import { createIds } from '../ids.ts'
import { coarsen, DAY, formatInstant, HOUR, MINUTE, SECOND } from '../instants.ts'
import { createItems, type Items } from '../items.ts'
import { createDraw, mix, mixBelow } from '../random.ts'
import { createTimeline, sortedByTime, type Timeline } from '../timeline.ts'
import type { Customers } from './crm/customers.ts'
import { compare, type People, WORKSPACE_DOMAIN } from './people.ts'
import { quote, quoteOrNull, SALT, type Scene } from './scene.ts'

/** Threads of e-mails. An e-mail has one or more copies, and each copy is a separate message. */
export interface Messages {
  items: Items
  timeline: Timeline
  /** null when the message names no thread. */
  threadIdOf(index: number): string | null
  /** The messages of a thread, newest first, published or not. Empty for an unknown thread. */
  ofThread(threadId: string): number[]
  /** The item of the list, without the text. */
  listJson(index: number): string
  /** The answer of the single read. */
  json(index: number): string
  /** The CRM records that the e-mail is about; -1 for none. */
  relatedRecords(index: number): RelatedRecords
  /** The workspace member who sends and receives the e-mails of its thread. */
  memberOf(index: number): number
  isSent(index: number): boolean
  addMail(micros: number, choice: number): number
  /** Adds a copy of an existing e-mail, as a newly connected mailbox does. */
  addCopy(of: number, micros: number): number
}

export interface RelatedRecords {
  company: number
  contact: number
  deal: number
}

/** The e-mail that a message is a copy of. */
interface MailSource {
  thread: number
  mail: number
  copy: number
}

const NO_RECORDS: RelatedRecords = { company: -1, contact: -1, deal: -1 }
const COPY_COUNTS = [1, 1, 1, 1, 1, 1, 2, 2, 2, 3] as const

export function createMessages(scene: Scene, people: People, customers: Customers): Messages {
  const { seed, sizes } = scene
  const layout = createLayout(scene)
  const items = createItems({
    seed,
    salt: SALT.message,
    shape: 'uuid',
    count: sizes.messages,
    // Hidden messages stand for bounces, auto-replies and messages that the share settings do not publish.
    initial: index => (mix(seed, SALT.message + 1, index) % 100 < 3 ? 'hidden' : 'published'),
  })
  const timeline = createTimeline(layout.times)
  const threadIds = createIds(seed, SALT.thread, 'hex16')
  const added: MailSource[] = []
  const addedByThread = new Map<number, number[]>()
  const baseCount = sizes.messages

  const sourceOf = (index: number): MailSource =>
    index < baseCount
      ? { thread: layout.thread[index] ?? 0, mail: layout.mail[index] ?? 0, copy: layout.copy[index] ?? 0 }
      : (added[index - baseCount] ?? { thread: 0, mail: 0, copy: 0 })
  const mailSeed = ({ thread, mail }: MailSource): number =>
    mix(seed ^ Math.imul(mail + 1, 0x9e3779b1), SALT.mail, thread)
  const companyOf = (thread: number): number =>
    sizes.companies === 0 || mix(seed, SALT.thread + 2, thread) % 100 < 5
      ? -1
      : mixBelow(seed, SALT.thread + 3, thread, sizes.companies)
  const memberAt = (thread: number, turn: number): number =>
    mixBelow(seed, SALT.thread + 10 + turn, thread, sizes.members)

  function relatedRecords(index: number): RelatedRecords {
    const { thread } = sourceOf(index)
    const company = companyOf(thread)
    if (company < 0) return NO_RECORDS
    const contacts = customers.originalContactsOfCompany(company)
    const deals = customers.originalDealsOfCompany(company)
    const draw = mix(seed, SALT.thread + 4, thread)
    return {
      company,
      contact: contacts.length === 0 ? -1 : (contacts[draw % contacts.length] ?? -1),
      deal: deals.length === 0 || draw % 10 < 2 ? -1 : (deals[(draw >>> 8) % deals.length] ?? -1),
    }
  }

  const contactParts: string[] = []
  const contactPart = (contact: number): string => {
    contactParts[contact] ??= quote(customers.contactEmail(contact))
    return contactParts[contact]
  }
  const emails: string[] = []
  const memberPart = (member: number): string => {
    emails[member] ??= quote(people.memberEmail(member))
    return emails[member]
  }

  interface Party {
    handle: string
    name: string | null
    contact: number
  }
  const contactParty = (contact: number): Party => ({
    handle: contactPart(contact),
    name: mix(seed, SALT.contact + 30, contact) % 10 === 0 ? null : customers.contactName(contact),
    contact,
  })
  const memberParty = (member: number): Party => ({
    handle: memberPart(member),
    name: people.originalName(member),
    contact: -1,
  })

  function partiesOf(index: number): { role: string; party: Party }[] {
    const source = sourceOf(index)
    const { thread } = source
    const draw = mailSeed(source)
    const { company, contact } = relatedRecords(index)
    const contactParties = contact >= 0 ? [contactParty(contact)] : [strangerParty(thread)]
    for (const other of company < 0 ? [] : customers.originalContactsOfCompany(company)) {
      if (other !== contact && mix(draw, 1, other) % 3 === 0 && contactParties.length < 4)
        contactParties.push(contactParty(other))
    }
    const memberOfThread = memberParty(memberAt(thread, 0))
    const sent = isSentBy(draw)
    const rows: { role: string; party: Party }[] = []
    const others = sent ? contactParties : [memberOfThread]
    const sender = sent ? memberOfThread : contactParties[0]
    if (sender) rows.push({ role: 'FROM', party: sender })
    if (draw % 20 === 7) others.push(listParty)
    for (const party of sortedParties(others)) rows.push({ role: 'TO', party })
    const copied = sent ? [] : contactParties.slice(1)
    if (draw % 4 === 1) copied.push(memberParty(memberAt(thread, 1)))
    for (const party of sortedParties(copied))
      if (party.handle !== memberOfThread.handle) rows.push({ role: 'CC', party })
    if (sent && source.copy === 0 && draw % 25 === 3) {
      rows.push({ role: 'BCC', party: { handle: `"archive@${WORKSPACE_DOMAIN}"`, name: null, contact: -1 } })
    }
    return rows
  }

  function participantsJson(index: number): string {
    const hidesContactIds = mix(seed, SALT.message + 2, index) % 20 === 0
    let json = ''
    for (const { role, party } of partiesOf(index)) {
      const id = hidesContactIds ? null : customers.originalContactId(party.contact)
      const contact = id === null ? 'null' : `"${id}"`
      json += `${json === '' ? '' : ','}{"handle":${party.handle},"display_name":${quoteOrNull(party.name)},"role":"${role}","contact_id":${contact}}`
    }
    return json
  }

  const subjectOf = (index: number, source: MailSource): string | null => {
    if (mix(seed, SALT.message + 3, index) % 100 < 12) return null
    const draw = mix(seed, SALT.thread + 5, source.thread)
    if (draw % 50 === 0) return null
    const subject = mailSubject(createDraw(seed, SALT.thread + 6, source.thread))
    const revision = items.revision(index)
    return `${source.mail > 0 ? 'Re: ' : ''}${subject}${revision > 0 ? ` [updated ${revision}]` : ''}`
  }
  const headerId = (source: MailSource): string => {
    const draw = mailSeed(source)
    const kind = draw % 200
    if (kind < 3) return '"header_message_id":"",'
    if (kind === 3) return ''
    if (kind === 4) return '"header_message_id":null,'
    const host = kind % 3 === 0 ? 'mail.gmail.example' : kind % 3 === 1 ? WORKSPACE_DOMAIN : 'outlook.example'
    return `"header_message_id":"<${draw.toString(36)}.${source.thread}.${source.mail}@${host}>",`
  }
  const threadIdOf = (index: number): string | null => {
    const { thread } = sourceOf(index)
    return mix(seed, SALT.thread + 7, thread) % 40 === 0 ? null : threadIds.of(thread)
  }

  function head(index: number): string {
    const source = sourceOf(index)
    const draw = mailSeed(source)
    const thread = threadIdOf(index)
    const isGroup = (draw % 20 === 7) !== (items.revision(index) % 2 === 1)
    const extra = mix(seed, SALT.message + 5, index) % 40 === 0 ? ',"importance":"high"' : ''
    return (
      `{"id":"${items.ids.of(index)}",${headerId(source)}"thread_id":${thread === null ? 'null' : `"${thread}"`}` +
      `,"subject":${quoteOrNull(subjectOf(index, source))},"received_at":"${formatInstant(timeline.timeOf(index), mix(seed, SALT.message + 6, index))}"` +
      `,"is_internal":false,"is_group_email":${isGroup},"participants":[${participantsJson(index)}]${extra}`
    )
  }

  function textOf(index: number): string | null {
    const source = sourceOf(index)
    // The share settings of the mailbox hide subject and text together.
    if (mix(seed, SALT.message + 3, index) % 100 < 12) return null
    const draw = mailSeed(source)
    if (draw % 100 === 99) return null
    const { contact, company } = relatedRecords(index)
    const member = people.originalName(memberAt(source.thread, 0))
    const customer = contact < 0 ? 'Alex Morgan' : customers.contactName(contact)
    const customerCompany = company < 0 ? 'Independent' : customers.companyName(company)
    const sent = isSentBy(draw)
    const body = mailBody(createDraw(draw, SALT.mail + 1, source.thread), {
      from: sent ? member : customer,
      to: sent ? customer : member,
      company: sent ? 'Parley Demo' : customerCompany,
    })
    const revision = items.revision(index)
    return revision > 0 ? `${body}\n\n[Updated ${revision}]` : body
  }

  const addSource = (source: MailSource, micros: number): number => {
    const index = items.add(micros)
    added.push(source)
    const list = addedByThread.get(source.thread)
    if (list) list.push(index)
    else addedByThread.set(source.thread, [index])
    timeline.place(index, micros)
    return index
  }

  return {
    items,
    timeline,
    threadIdOf,
    ofThread: threadId => {
      const thread = threadIds.indexOf(threadId)
      if (thread < 0 || thread >= layout.threadStart.length) return []
      const first = layout.threadStart[thread] ?? baseCount
      const end = layout.threadStart[thread + 1] ?? baseCount
      const all = Array.from({ length: Math.max(0, end - first) }, (_, n) => first + n)
      return [...all, ...(addedByThread.get(thread) ?? [])]
        .filter(index => threadIdOf(index) !== null)
        .sort((a, b) => compare(timeline.timeOf(b), timeline.timeOf(a)) || b - a)
    },
    listJson: index => `${head(index)}}`,
    json: index => `${head(index)},"text":${quoteOrNull(textOf(index))}}`,
    relatedRecords,
    memberOf: index => memberAt(sourceOf(index).thread, 0),
    isSent: index => isSentBy(mailSeed(sourceOf(index))),
    addMail: (micros, choice) => {
      // People mostly answer e-mails of the last days.
      const answered = scene.isTidy && choice % 6 > 0 ? added.at(-1 - ((choice >>> 3) % 30)) : undefined
      const thread = answered?.thread ?? choice % Math.max(1, layout.threadStart.length)
      return addSource({ thread, mail: 1_000 + added.length, copy: 0 }, micros)
    },
    addCopy: (of, micros) => addSource({ ...sourceOf(of), copy: 100 + added.length }, micros),
  }
}

const listParty = { handle: `"sales-team@${WORKSPACE_DOMAIN}"`, name: 'Sales team', contact: -1 }

function strangerParty(thread: number) {
  return { handle: `"alex.morgan${thread % 97}@mail.example"`, name: 'Alex Morgan', contact: -1 }
}

function isSentBy(draw: number): boolean {
  return ((draw >>> 5) & 1) === 1
}

function sortedParties<T extends { handle: string }>(parties: T[]): T[] {
  return parties.length < 2 ? parties : parties.sort((a, b) => compare(a.handle, b.handle))
}

interface Layout {
  times: Float64Array
  thread: Uint32Array
  mail: Uint16Array
  copy: Uint8Array
  /** First message of each thread. */
  threadStart: Uint32Array
}

/** The thread, e-mail and copy number of each message, and when it was received. */
function createLayout(scene: Scene): Layout {
  const { seed, sizes } = scene
  const count = sizes.messages
  const thread = new Uint32Array(count)
  const mail = new Uint16Array(count)
  const copy = new Uint8Array(count)
  const starts: number[] = []
  for (let index = 0; index < count; ) {
    const at = starts.length
    starts.push(index)
    const mails =
      1 + Math.min(mixBelow(seed, SALT.thread + 20, at, 6), mixBelow(seed, SALT.thread + 21, at, 14))
    for (let number = 0; number < mails && index < count; number++) {
      const copies = COPY_COUNTS[mixBelow(seed, SALT.thread + 22 + number, at, COPY_COUNTS.length)] ?? 1
      for (let each = 0; each < copies && index < count; each++, index++) {
        thread[index] = at
        mail[index] = number
        copy[index] = each
      }
    }
  }
  const times = receivedTimes(scene, { thread, mail, copy }, starts.length)
  return { times, thread, mail, copy, threadStart: Uint32Array.from(starts) }
}

function receivedTimes(
  scene: Scene,
  { thread, mail, copy }: Pick<Layout, 'thread' | 'mail' | 'copy'>,
  threads: number,
): Float64Array {
  const { seed, start, end } = scene
  const times = new Float64Array(thread.length)
  let sentAt = 0
  for (let index = 0; index < times.length; index++) {
    const at = thread[index] ?? 0
    const draw = mix(seed, SALT.message + 10, index)
    if (copy[index] === 0) {
      const gap = MINUTE * 7 + (mix(seed, SALT.message + 11, index) / 0x1_0000_0000) ** 2 * 4 * DAY
      const opened =
        start + ((at + (mix(seed, SALT.message + 12, at) % 1_000) / 1_000) / threads) * (end - start)
      sentAt = mail[index] === 0 ? opened : sentAt + gap
    }
    // Most copies arrive within seconds; one in eight arrives up to five hours later.
    const delay = copy[index] === 0 ? 0 : draw % 8 === 0 ? (draw % 300) * MINUTE : (draw % 40) * SECOND
    times[index] = coarsen(
      Math.floor(Math.min(sentAt + delay, end - (draw % 5) * HOUR - (draw % 1_000_000))),
      draw,
    )
  }
  makeTies(times)
  return times
}

/** Gives neighbours in time the same instant, as bulk imports do: pairs, triples, and runs longer than a page. */
function makeTies(times: Float64Array): void {
  const order = sortedByTime(times)
  const level = (from: number, length: number): void => {
    const first = times[order[from] ?? 0] ?? 0
    const second = first - (first % SECOND)
    for (let i = from; i < Math.min(order.length, from + length); i++) times[order[i] ?? 0] = second
  }
  for (let from = 50; from < order.length; from += 83) level(from, 2 + (from % 2))
  for (const [part, length, least] of TIE_RUNS)
    if (order.length >= least) level(Math.floor(order.length * part), length)
}

/** Position in the history (0 to 1), length of the run, and the least number of messages that has such a run. */
const TIE_RUNS = [
  [0.2, 130, 1_000],
  [0.5, 35, 120],
  [0.8, 230, 4_000],
] as const
