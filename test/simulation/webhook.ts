import { Client } from 'undici'
import type { Machine } from './machine.ts'

/** Webhooks of the product: hints to the daemon at what to read. */

/** Where the daemon takes them. */
export const NUDGE = { listen: '127.0.0.1:8080', secret: 'a-secret-of-webhooks' }

export type WebhookSubject = 'activities' | 'meetings' | 'playbooks' | 'crm_records'

/** The body by what it is about, in forms that products use; the specification shows none. */
const BODIES: Readonly<Record<WebhookSubject, (key: string) => unknown>> = {
  activities: key => ({ type: 'record.activity_link.created', data: { activity_id: key } }),
  meetings: key => ({ type: 'meeting.completed.beta', data: { meeting_id: key } }),
  playbooks: key => ({ event: 'playbook.updated.beta', playbook: { id: key } }),
  crm_records: key => ({ type: 'record.updated', data: { object: 'deal', id: key } }),
}

const NEVER_AN_ITEM = '00000000-0000-4000-8000-000000000000'

/** Resolves once the daemon has answered. While it is down, the webhook is lost. */
export async function sendWebhook(
  machine: Machine,
  about: WebhookSubject,
  key = NEVER_AN_ITEM,
): Promise<void> {
  const client = new Client(`http://${NUDGE.listen}`)
  let isOver = false
  void client
    .request({
      method: 'POST',
      path: `/nudge/${NUDGE.secret}`,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(BODIES[about](key)),
    })
    .then(({ body }) => body.dump())
    .catch(() => undefined)
    .finally(() => {
      isOver = true
    })
  await machine.until(() => isOver)
  await client.destroy()
}
