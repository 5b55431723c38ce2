import type { Recount } from './recount.ts'
import { CONTACT_RECOUNTS } from './recount-contacts.ts'
import { DEAL_CHANGE_RECOUNTS } from './recount-deal-changes.ts'
import { DEAL_RECOUNTS } from './recount-deals.ts'
import { MAIL_RECOUNTS } from './recount-mail.ts'
import { MEETING_RECOUNTS } from './recount-meetings.ts'
import { SYNC_RECOUNTS } from './recount-sync.ts'

/** Every question's second count, by the name of its file. */
export const RECOUNTS: Readonly<Record<string, Recount>> = {
  ...MEETING_RECOUNTS,
  ...MAIL_RECOUNTS,
  ...DEAL_RECOUNTS,
  ...DEAL_CHANGE_RECOUNTS,
  ...CONTACT_RECOUNTS,
  ...SYNC_RECOUNTS,
}
