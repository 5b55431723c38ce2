import type { Change } from '../../simulator/changes/change.ts'
import type { Fault } from '../../simulator/faults/faults.ts'

/** The changes that the demo makes in its workspace, and the API problems that it simulates. */

/** The item to change, read from the warehouse. All columns are parameters of `arrived`. */
export type ChosenItem = Readonly<Record<string, string | null>>

export interface DemoChange {
  /** A description that is true before and after the change arrives in the warehouse. */
  kind: string
  /** Relative frequency. */
  weight: number
  /** SQL that chooses the item; its column `id` is the item's id. Undefined: the change creates an item. */
  choose?: string
  change: Change
  /** SQL that returns a description as soon as the change is in the warehouse. `@id` is the item's id. */
  arrived: string
}

export interface DemoTrouble {
  what: string
  weight: number
  faults?: readonly Fault[]
  /** Allowed requests per second. */
  rate?: number
  ms: number
}

/** SQL that chooses one of the newest items: old items are audited less often, so their changes arrive late. */
const recentItemSql = (table: string, time: string, columns: string, among: number, where = '1') =>
  `SELECT ${columns} FROM (SELECT * FROM ${table} WHERE _deleted_at IS NULL AND ${where} ORDER BY ${time} DESC LIMIT ${among}) ORDER BY random() LIMIT 1`

export const DEMO_CHANGES: readonly DemoChange[] = [
  {
    kind: 'a new e-mail',
    weight: 10,
    change: { kind: 'publish', resource: 'messages' },
    arrived:
      "SELECT 'a new e-mail, ' || coalesce(subject, 'without a subject') FROM message_copies WHERE id = @id",
  },
  {
    kind: 'a new meeting',
    weight: 4,
    change: { kind: 'publish', resource: 'meetings' },
    arrived: "SELECT 'a new meeting, ' || title FROM meetings WHERE id = @id AND title IS NOT NULL",
  },
  {
    kind: 'a new meeting, not summarised yet',
    weight: 2,
    change: { kind: 'publish', resource: 'meetings', unready: true },
    arrived:
      "SELECT 'a new meeting, not summarised yet, ' || title FROM meetings WHERE id = @id AND title IS NOT NULL",
  },
  {
    kind: 'the summary of a meeting',
    weight: 2,
    choose: recentItemSql('meetings', 'start_time', 'id', 20, "overview_status <> 'COMPLETED'"),
    change: { kind: 'completeOverview' },
    arrived:
      "SELECT 'the summary of a meeting, ' || title FROM meetings WHERE id = @id AND overview_status = 'COMPLETED'",
  },
  {
    kind: 'a deal that moves on',
    weight: 8,
    choose: `SELECT id, updated_at AS before, fields ->> 'stage_id' AS stage FROM crm_records
      WHERE object = 'deal' AND _deleted_at IS NULL ORDER BY fields ->> 'is_closed', random() LIMIT 1`,
    change: { kind: 'edit', resource: 'crm_records', object: 'deal' },
    arrived: `SELECT CASE WHEN d.fields ->> 'stage_id' = @stage THEN 'a deal changed, ' ELSE 'a deal moved to ' || (s.fields ->> 'name') || ', ' END
      || (d.fields ->> 'name') FROM crm_records d LEFT JOIN crm_records s ON s.object = 'stage' AND s.id = d.fields ->> 'stage_id'
      WHERE d.object = 'deal' AND d.id = @id AND d.updated_at IS NOT @before`,
  },
  {
    kind: 'an old e-mail that appears only now',
    weight: 3,
    change: { kind: 'publishLate', resource: 'messages', count: 2 },
    arrived:
      "SELECT 'an e-mail of ' || substr(received_at, 1, 10) || ' that appears only now' FROM message_copies WHERE id = @id",
  },
  {
    kind: 'an edited e-mail',
    weight: 2,
    choose: recentItemSql('message_copies', 'received_at', 'id, _synced_at AS before', 100),
    change: { kind: 'edit', resource: 'messages' },
    arrived:
      "SELECT 'an edited e-mail, ' || coalesce(subject, 'without a subject') FROM message_copies WHERE id = @id AND _synced_at <> @before",
  },
  {
    kind: 'a meeting with another title',
    weight: 2,
    choose: recentItemSql('meetings', 'start_time', 'id, title AS before', 20, "access = 'open'"),
    change: { kind: 'edit', resource: 'meetings' },
    arrived:
      "SELECT 'a meeting with another title, ' || title FROM meetings WHERE id = @id AND title <> @before",
  },
  {
    kind: 'a deleted e-mail',
    weight: 2,
    choose: recentItemSql('message_copies', 'received_at', 'id', 100),
    change: { kind: 'delete', resource: 'messages' },
    arrived:
      "SELECT 'a deleted e-mail of ' || substr(received_at, 1, 10) FROM message_copies WHERE id = @id AND _deleted_at IS NOT NULL",
  },
  {
    kind: 'a meeting made private',
    weight: 1,
    choose: recentItemSql('meetings', 'start_time', 'id', 20, "access = 'open'"),
    change: { kind: 'hide', resource: 'meetings' },
    arrived:
      "SELECT 'a meeting made private, ' || title FROM meetings WHERE id = @id AND access = 'withheld'",
  },
  {
    kind: 'a member who leaves',
    weight: 1,
    choose: 'SELECT id FROM members WHERE _deleted_at IS NULL ORDER BY random() LIMIT 1',
    change: { kind: 'hide', resource: 'members' },
    arrived: "SELECT 'a member who leaves, ' || name FROM members WHERE id = @id AND _deleted_at IS NOT NULL",
  },
  {
    kind: 'a member who comes back',
    weight: 1,
    choose: 'SELECT id FROM members WHERE _deleted_at IS NOT NULL ORDER BY random() LIMIT 1',
    change: { kind: 'reveal', resource: 'members' },
    arrived: "SELECT 'a member who comes back, ' || name FROM members WHERE id = @id AND _deleted_at IS NULL",
  },
]

export const DEMO_TROUBLES: readonly DemoTrouble[] = [
  {
    what: 'for 10 s the API fails every third request (503, 502, lost connections)',
    weight: 2,
    faults: [
      { kind: 'status', status: 503, probability: 0.2 },
      { kind: 'status', status: 502, probability: 0.1 },
      { kind: 'reset', probability: 0.05 },
    ],
    ms: 10_000,
  },
  { what: 'for 15 s the API allows 20 requests/s (429)', weight: 2, rate: 20, ms: 15_000 },
  {
    what: 'for 10 s the API answers only 503',
    weight: 1,
    faults: [{ kind: 'status', status: 503 }],
    ms: 10_000,
  },
]

/** A weighted random choice. @param chance from 0 to below 1 */
export function pickWeighted<T extends { weight: number }>(
  things: readonly T[],
  chance: number,
): T | undefined {
  const total = things.reduce((sum, { weight }) => sum + weight, 0)
  let left = chance * total
  return things.find(({ weight }) => {
    left -= weight
    return left < 0
  })
}
