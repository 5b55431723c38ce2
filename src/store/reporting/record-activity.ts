import { FOLLOWED_DAY } from '../../dictionary/conversation-tables.ts'
import { HOW } from './conversations.ts'
import { createDerivedRows, type DerivedRow, type Deriving, rowsFor } from './derivation.ts'

/** What happened with each CRM record, summed over its conversations. */

const COUNTS = {
  meetings: "c.kind = 'meeting'",
  mails: "c.kind = 'mail'",
  mails_in: "c.kind = 'mail' AND c.side = 'theirs'",
  mails_out: "c.kind = 'mail' AND c.side = 'ours'",
}

const dayWhere = (condition: string) => `CASE WHEN c.day <= t.today AND ${condition} THEN c.day END`

const DAYS = {
  first_meeting_day: `min(${dayWhere("c.kind = 'meeting'")})`,
  last_day: `max(${dayWhere('true')})`,
  last_theirs_day: `max(${dayWhere("(c.side = 'theirs' OR (c.kind = 'meeting' AND c.is_external = 1))")})`,
  last_two_way_day: `max(${dayWhere('c._is_two_way = 1')})`,
}

const SUMS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    Object.entries(COUNTS).map(([name, is]) => [name, `count(CASE WHEN ${is} THEN 1 END)`]),
  ),
  ...Object.fromEntries(
    Object.entries(COUNTS).map(([name, is]) => [
      `${name}_without_derived`,
      `count(CASE WHEN ${is} AND p.how <> ${HOW.derived} THEN 1 END)`,
    ]),
  ),
  ...DAYS,
}

/** SQL for the number of people of theirs who wrote an e-mail or spoke in a meeting of the record. */
const ENGAGED = `(SELECT count(DISTINCT h.party_id) FROM _record_conversations q
  CROSS JOIN _conversation_people x ON x.conversation = q.conversation AND x.has_said = 1
  CROSS JOIN people h ON h._id = x.person AND h.side = 'theirs' WHERE q.record = r._id)`

const ACTIVITY = `SELECT r._id, r.object, r.record_id, ${ENGAGED} AS engaged_people, ${Object.entries(SUMS)
  .map(([name, sum]) => `${sum} AS ${name}`)
  .join(', ')}
  FROM (SELECT ${FOLLOWED_DAY} AS today) t CROSS JOIN json_each(:keys) k CROSS JOIN record_activity r ON r._id = k.value
  CROSS JOIN _record_conversations p ON p.record = r._id CROSS JOIN conversations c ON c._id = p.conversation
  GROUP BY r._id`

/** Follows records. A record without conversations has no row. */
export function createRecordActivity({ prepare }: Pick<Deriving, 'prepare'>) {
  const rows = createDerivedRows(prepare, {
    table: 'record_activity',
    columns: ['_id', 'object', 'record_id', 'engaged_people', ...Object.keys(SUMS)],
    key: ['_id'],
    scope: '_id',
  })
  return (numbers: readonly number[]) => {
    rows.replace(numbers, rowsFor<DerivedRow<string>>(prepare, ACTIVITY, numbers))
  }
}
