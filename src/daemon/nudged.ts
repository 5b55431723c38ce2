import type { Wanted } from '../engine/shift.ts'
import { isUuid } from '../engine/uuid.ts'
import type { Nudge } from '../server/nudge.ts'

/** What is read because of a webhook: it only says where to look, and the API says what is there. Pure. */
export function readsFor({ meetings, playbooks, records, activities }: Nudge): Wanted {
  return {
    lists: activities ? ['activities.list'] : [],
    keys: [
      ...meetings.flatMap(key => [
        { feed: 'meetings.detail', key },
        { feed: 'playbook_results.read', key },
      ]),
      ...playbooks.map(key => ({ feed: 'playbooks.detail', key })),
      ...records
        .filter(({ id }) => isUuid(id))
        .map(({ object, id }) => ({
          feed: 'crm_records.list.changed',
          scope: object,
          key: id.toLowerCase(),
        })),
    ],
  }
}
