import { createIds } from '../../base/ids.ts'
import { createItems, type Items } from '../../base/items.ts'
import { mix } from '../../base/random.ts'
import { quoteOrNull, SALT, type Scene } from '../../base/scene.ts'
import { createTimeline, type Timeline } from '../../base/timeline.ts'
import type { Customers } from '../crm/customers.ts'
import { compare, type People } from '../crm/people.ts'
import type { RelatedRecords } from '../crm/related.ts'
import { createLayout } from './layout.ts'
import { createMails } from './mails.ts'
import {
  isSentBy,
  isSplitThread,
  type MailMessage,
  mailDraw,
  threadMember,
  threadRecords,
} from './message.ts'
import { createParticipants } from './participants.ts'
import { headOf, textOf } from './text.ts'

/** Threads of e-mails. An e-mail has one or more copies, and each copy is a separate message. */
export interface Messages {
  items: Items
  timeline: Timeline
  /** The messages of a thread, newest first, published or not. Empty for an unknown thread. */
  ofThread(threadId: string): number[]
  /** The item of the list, without the text. */
  listJson(index: number): string
  /** The answer of the single read. */
  json(index: number): string
  relatedRecords(index: number): RelatedRecords
  /** The workspace member who sends and receives the e-mails of its thread. */
  memberOf(index: number): number
  isSent(index: number): boolean
  addMail(micros: number, choice: number): number
  /** Adds a copy of an existing e-mail, as a newly connected mailbox does. */
  addCopy(of: number, micros: number): number
}

/** Added to the number of a thread for its id in another mailbox. */
const OTHER_MAILBOX = 2 ** 31

export function createMessages(scene: Scene, people: People, customers: Customers): Messages {
  const { seed } = scene
  const layout = createLayout(scene)
  const mails = createMails(scene, layout)
  const items = createItems({
    seed,
    salt: SALT.message,
    shape: 'uuid',
    count: scene.sizes.messages,
    // Hidden messages stand for bounces, auto-replies and messages that the share settings do not publish.
    initial: index => (mix(seed, SALT.message + 1, index) % 100 < 3 ? 'hidden' : 'published'),
  })
  const timeline = createTimeline(layout.times)
  const threadIds = createIds(seed, SALT.thread, 'hex16')
  const participantsJson = createParticipants(scene, people, customers)

  /** null when the message names no thread. */
  const threadIdOf = (index: number): string | null => {
    const { thread, copy } = mails.of(index)
    if (mix(seed, SALT.thread + 7, thread) % 40 === 0) return null
    return threadIds.of(copy > 0 && isSplitThread(scene, thread) ? OTHER_MAILBOX + thread : thread)
  }
  const messageAt = (index: number): MailMessage => {
    const mail = mails.of(index)
    return {
      index,
      ...mail,
      id: items.ids.of(index),
      threadId: threadIdOf(index),
      receivedAt: timeline.timeOf(index),
      draw: mailDraw(scene, mail),
      revision: items.revision(index),
      member: threadMember(scene, mail.thread, 0),
      records: threadRecords(scene, customers, mail.thread),
    }
  }
  const head = (message: MailMessage): string => headOf(scene, message, participantsJson(message))
  const add = (micros: number): number => {
    const index = items.add(micros)
    timeline.place(index, micros)
    return index
  }

  return {
    items,
    timeline,
    ofThread: threadId => {
      const thread = threadIds.indexOf(threadId)
      return mails
        .inThread(thread % OTHER_MAILBOX)
        .filter(index => threadIdOf(index) === threadIds.of(thread))
        .sort((a, b) => compare(timeline.timeOf(b), timeline.timeOf(a)) || b - a)
    },
    listJson: index => `${head(messageAt(index))}}`,
    json: index => {
      const message = messageAt(index)
      return `${head(message)},"text":${quoteOrNull(textOf(scene, people, customers, message))}}`
    },
    relatedRecords: index => threadRecords(scene, customers, mails.of(index).thread),
    memberOf: index => threadMember(scene, mails.of(index).thread, 0),
    isSent: index => isSentBy(mailDraw(scene, mails.of(index))),
    addMail: (micros, choice) => {
      mails.addMail(choice)
      return add(micros)
    },
    addCopy: (of, micros) => {
      mails.addCopy(of)
      return add(micros)
    },
  }
}
