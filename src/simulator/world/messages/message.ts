import { mix, mixBelow } from '../../base/random.ts'
import { SALT, type Scene } from '../../base/scene.ts'
import type { Customers } from '../crm/customers.ts'
import { NO_RECORDS, type RelatedRecords, recordsOfCompany } from '../crm/related.ts'
import type { MailCopy } from './mails.ts'

/** What the content of a message depends on. */
export interface MailMessage extends MailCopy {
  index: number
  id: string
  threadId: string | null
  receivedAt: number
  /** The draw of the e-mail: the same for all of its copies. */
  draw: number
  /** The number of edits of the message. */
  revision: number
  /** The workspace member who sends and receives the e-mails of the thread. */
  member: number
  records: RelatedRecords
}

export function mailDraw({ seed }: Scene, { thread, mail }: MailCopy): number {
  return mix(seed ^ Math.imul(mail + 1, 0x9e3779b1), SALT.mail, thread)
}

/** Whether the member sent the e-mail, not the contact. */
export function isSentBy(draw: number): boolean {
  return ((draw >>> 5) & 1) === 1
}

/** Whether the e-mail also went to the mailing list. */
export function isGroupMail(draw: number): boolean {
  return draw % 20 === 7
}

/** Whether the e-mail went to many people on both sides. */
export function isLargeGroupMail({ isRealistic }: Scene, draw: number): boolean {
  return isRealistic && isGroupMail(draw) && draw % 100 === 7
}

/** Whether each mailbox gives the thread another id. */
export function isSplitThread({ seed, isRealistic }: Scene, thread: number): boolean {
  return isRealistic && mix(seed, SALT.thread + 8, thread) % 5 === 0
}

/** Member 0 of a thread sends and receives its e-mails; member 1 gets copies of some. */
export function threadMember({ seed, sizes }: Scene, thread: number, number: 0 | 1): number {
  return mixBelow(seed, SALT.thread + 10 + number, thread, sizes.members)
}

export function threadRecords({ seed, sizes }: Scene, customers: Customers, thread: number): RelatedRecords {
  if (sizes.companies === 0 || mix(seed, SALT.thread + 2, thread) % 100 < 5) return NO_RECORDS
  const company = mixBelow(seed, SALT.thread + 3, thread, sizes.companies)
  return recordsOfCompany(customers, company, mix(seed, SALT.thread + 4, thread), 2)
}

/** The share settings of some mailboxes hide subject and text together. */
export function isContentHidden({ seed }: Scene, message: number): boolean {
  return mix(seed, SALT.message + 3, message) % 100 < 12
}
