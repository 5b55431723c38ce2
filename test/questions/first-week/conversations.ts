import { groupedBy } from '../../support/grouped-by.ts'
import { type Person, recipientsOf, senderOf } from './people.ts'
import type { Mail, World } from './world-rows.ts'

/** A conversation: its e-mails in the order of time, with their senders. */
export type Conversation = readonly Sent[]

export interface Sent {
  mail: Mail
  sender: Person
}

/** E-mails that share a thread in any of their copies. One without a thread is alone. E-mails without a sender are left out. */
export function conversationsOf(world: World): Conversation[] {
  const roots = new Map<string, string>()
  const rootOf = (key: string): string => {
    let root = key
    for (let next = roots.get(root); next !== undefined && next !== root; next = roots.get(root)) root = next
    return root
  }
  const sent = world.mails.flatMap(mail => {
    const sender = mail.at <= world.now ? senderOf(world, mail) : null
    return sender ? [{ mail, sender }] : []
  })
  for (const { mail } of sent)
    for (const thread of mail.threadIds) roots.set(rootOf(`thread ${thread}`), rootOf(`mail ${mail.id}`))
  return [...groupedBy(sent, ({ mail }) => rootOf(`mail ${mail.id}`)).values()].map(mails =>
    mails.sort(inOrder),
  )
}

/** At the same instant the e-mail from outside comes first. */
function inOrder(a: Sent, b: Sent): number {
  const place = ({ mail, sender }: Sent): string => `${mail.at} ${sender.side === 'ours' ? 1 : 0} ${mail.id}`
  return place(a) < place(b) ? -1 : 1
}

/** The time in which a customer waits for an answer, with the e-mails that ask for it. */
export interface Wait {
  asked: readonly Sent[]
  /** Undefined while the customer waits. */
  answer: Sent | undefined
}

/**
 * What one side wrote to the other while this did not answer, but e-mails to groups, and the answer to it. Partners change
 * nothing. An e-mail of the same instant is no answer.
 */
export function answeredIn(
  world: World,
  conversation: Conversation,
): { asked: readonly Sent[]; answer: Sent }[] {
  const waiting: Record<'ours' | 'outside', Sent[]> = { ours: [], outside: [] }
  return conversation.flatMap(answer => {
    const { side } = answer.sender
    if (side === 'partner') return []
    const other = side === 'ours' ? 'outside' : 'ours'
    const asked = waiting[other].filter(({ mail }) => mail.at < answer.mail.at)
    waiting[other] = waiting[other].filter(each => !asked.includes(each))
    if (side === 'outside' || recipientsOf(world, answer.mail).some(each => each.side === 'outside'))
      waiting[side].push(answer)
    return asked.length === 0 ? [] : [{ asked: asked.filter(({ mail }) => !mail.isGroup), answer }]
  })
}

/**
 * A customer's e-mail begins a wait unless it is a group e-mail. Any e-mail from us ends it. Partners and other people
 * outside change nothing.
 */
export function waitsIn(conversation: Conversation, isAsking: (sender: Person) => boolean): Wait[] {
  const waits: Wait[] = []
  let asked: Sent[] = []
  for (const each of conversation) {
    if (each.sender.side === 'ours') {
      if (asked.length > 0) waits.push({ asked, answer: each })
      asked = []
    } else if (isAsking(each.sender) && !each.mail.isGroup) asked.push(each)
  }
  return asked.length > 0 ? [...waits, { asked, answer: undefined }] : waits
}
