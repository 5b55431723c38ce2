import { formatInstant, TIDY_VARIETY } from '../../base/instants.ts'
import { createDraw, mix } from '../../base/random.ts'
import { quoteOrNull, SALT, type Scene } from '../../base/scene.ts'
import { mailBody, mailSubject } from '../../content/mail.ts'
import type { Customers } from '../crm/customers.ts'
import { type People, WORKSPACE_DOMAIN } from '../crm/people.ts'
import { isContentHidden, isGroupMail, isSentBy, type MailMessage } from './message.ts'

/** The JSON object of a message without its text and its last brace. */
export function headOf(scene: Scene, message: MailMessage, participantsJson: string): string {
  const { seed } = scene
  const { index, id, threadId, receivedAt, draw, revision } = message
  const variety = scene.isTidy ? TIDY_VARIETY : mix(seed, SALT.message + 6, index)
  const received = formatInstant(receivedAt, variety)
  const isGroup = isGroupMail(draw) !== (revision % 2 === 1)
  const extra = mix(seed, SALT.message + 5, index) % 40 === 0 ? ',"importance":"high"' : ''
  return (
    `{"id":"${id}",${headerIdField(message)}"thread_id":${quoteOrNull(threadId)}` +
    `,"subject":${quoteOrNull(subjectOf(scene, message))},"received_at":"${received}"` +
    `,"is_internal":false,"is_group_email":${isGroup},"participants":[${participantsJson}]${extra}`
  )
}

/** The field of the Message-ID header with a comma behind it. Some messages have an empty id, null or no such field. */
function headerIdField({ draw, thread, mail }: MailMessage): string {
  const kind = draw % 200
  if (kind < 3) return '"header_message_id":"",'
  if (kind === 3) return ''
  if (kind === 4) return '"header_message_id":null,'
  const host = kind % 3 === 0 ? 'mail.gmail.example' : kind % 3 === 1 ? WORKSPACE_DOMAIN : 'outlook.example'
  return `"header_message_id":"<${draw.toString(36)}.${thread}.${mail}@${host}>",`
}

function subjectOf(scene: Scene, { index, thread, mail, revision }: MailMessage): string | null {
  const { seed } = scene
  if (isContentHidden(scene, index) || mix(seed, SALT.thread + 5, thread) % 50 === 0) return null
  const subject = mailSubject(createDraw(seed, SALT.thread + 6, thread))
  return `${mail > 0 ? 'Re: ' : ''}${subject}${revision > 0 ? ` [updated ${revision}]` : ''}`
}

export function textOf(
  scene: Scene,
  people: People,
  customers: Customers,
  { index, thread, draw, revision, member, records: { company, contact } }: MailMessage,
): string | null {
  if (isContentHidden(scene, index) || draw % 100 === 99) return null
  const isSent = isSentBy(draw)
  const memberName = people.originalName(member)
  const contactName = contact < 0 ? 'Alex Morgan' : customers.contactName(contact)
  const companyName = company < 0 ? 'Independent' : customers.companyName(company)
  const body = mailBody(createDraw(draw, SALT.mail + 1, thread), {
    from: isSent ? memberName : contactName,
    to: isSent ? contactName : memberName,
    company: isSent ? 'Parley Demo' : companyName,
  })
  return revision > 0 ? `${body}\n\n[Updated ${revision}]` : body
}
