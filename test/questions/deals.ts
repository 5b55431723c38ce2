import { groupedBy } from '../support/grouped-by.ts'
import type { CrmRecord, DemoWarehouse } from './demo-warehouse.ts'
import { text } from './recount.ts'

/** Shared parts of the recounts of deals: their stages, owners and activities. */

export const stagesOf = (warehouse: DemoWarehouse): Map<unknown, CrmRecord> =>
  new Map(warehouse.records('stage').map(record => [record.id, record]))

export const membersOf = (warehouse: DemoWarehouse): Map<unknown, string> =>
  new Map(warehouse.rows('members').map(row => [row['id'], text(row, 'name')]))

export const ownerOf = (members: ReadonlyMap<unknown, string>, fields: CrmRecord['fields']): string =>
  members.get(fields['owner_id']) ?? (fields['owner_id'] === null ? 'nobody' : 'not a member now')

export interface Activity {
  id: string
  kind: string
  at: string
  source: string
  actor: unknown
  isDirect: boolean
}

export const amountOf = (fields: CrmRecord['fields']): number | null =>
  typeof fields['amount'] === 'number' ? fields['amount'] : null

/** Activities by the record that they are linked to, from the payloads; each once for a record. */
export function activitiesBy(type: string, { after }: DemoWarehouse): Map<string, Activity[]> {
  const linked = after.activities.flatMap(activity =>
    [...linkedTo(type, activity['links'])].map(([record, isDirect]) => ({
      record,
      id: String(activity['id']),
      kind: String(activity['source_type']),
      at: new Date(String(activity['occurred_at'])).toISOString(),
      source: String(activity['source_id']),
      actor: (activity['actor'] as { id?: unknown } | null)?.id,
      isDirect,
    })),
  )
  return groupedBy(linked, ({ record }) => record)
}

/** Ids of the records of one type among links, and whether one of the links is direct. */
function linkedTo(type: string, links: unknown): Map<string, boolean> {
  const records = new Map<string, boolean>()
  for (const { context_type, context_id, origin } of links as Record<string, string>[]) {
    if (context_type !== type || context_id === undefined) continue
    records.set(context_id, (records.get(context_id) ?? false) || origin === 'DIRECT')
  }
  return records
}

export const latest = (activities: readonly Activity[]): string | undefined =>
  activities
    .map(({ at }) => at)
    .sort()
    .at(-1)
