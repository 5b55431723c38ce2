import { canonicalId, isUuid } from '../base/uuid.ts'
import type { UrgentReads } from '../engine/run/session.ts'
import type { Nudge } from '../server/nudge.ts'

/** The lists and keys to read because of a webhook. The data itself always comes from the API. Pure. */
export function readsFor({ meetings, playbooks, records, activities }: Nudge): UrgentReads {
  return {
    lists: activities ? ['activities.list'] : [],
    keys: [
      ...meetings.map(canonicalId).flatMap(key => [
        { feed: 'meetings.detail', key },
        { feed: 'playbook_results.read', key },
      ]),
      ...playbooks.map(canonicalId).map(key => ({ feed: 'playbooks.detail', key })),
      ...records
        .filter(({ id }) => isUuid(id))
        .map(({ object, id }) => ({
          feed: 'crm_records.list.changed',
          scope: object,
          key: canonicalId(id),
        })),
    ],
  }
}
