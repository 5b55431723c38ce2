import { addressNamed, HOW, positionOf, ROLES } from './conversations.ts'
import { AS_OF, TODAY } from './periods.ts'
import { finiteReal, localDay } from './roles-in-table.ts'

/** The views over the tables derived from conversations. These tables have internal numbers in place of long keys. */

const HOW_NAME = `CAST(CASE p.how ${Object.entries(HOW)
  .map(([name, how]) => `WHEN ${how} THEN '${name}'`)
  .join(' ')} END AS TEXT)`

const ROLE_NAME = `CAST(CASE x.role ${Object.entries(ROLES)
  .map(([name, role]) => `WHEN ${role} THEN '${role >= ROLES.OWNER ? name.toLowerCase() : name}'`)
  .join(' ')} END AS TEXT)`

/** A member who takes part under two addresses counts once, by the first of these roles. */
const MEMBER_ROLES = [ROLES.FROM, ROLES.OWNER, ROLES.ATTENDEE].join(', ')

/** SQL that is true until members were read. */
export const IS_WITHOUT_MEMBERS = 'NOT EXISTS (SELECT 1 FROM members)'

/**
 * SQL for the share of these addresses. Speakers who are matched to no address have rows without a person (`SPEAKERS`).
 */
const speakerRatio = (isAddress: string) => `CASE WHEN c.kind = 'meeting' AND c.is_readable = 1 THEN (
      SELECT CASE WHEN count(*) = count(s.speaker_ratio) THEN sum(s.speaker_ratio) END FROM meeting_speakers s
      WHERE s.meeting_id = c.conversation_id AND ${addressNamed('s.meeting_id', 's.speaker_name')} ${isAddress}) END`

/** SQL for the working hours from the first day of the calendar to an instant. */
const workHoursTo = (instant: string) => `(SELECT d.work_hours_before
    + coalesce(max(0, julianday(min(d.work_to, n.instant)) - julianday(d.work_from)) * 24, 0)
  FROM (SELECT ${instant} AS instant) n JOIN calendar d ON d.day = ${localDay('n.instant')})`

/** SQL for the share of these sides in the talking time of a meeting. */
const shareOf = (sides: string) =>
  `CAST(100.0 * sum(CASE WHEN r.side IN (${sides}) THEN r.speaker_ratio ELSE 0 END) / nullif(sum(r.speaker_ratio), 0) AS REAL)`

const WITHOUT_SIGN = "iif(a.answer GLOB '-*', substr(a.answer, 2), a.answer)"
const NUMBER_IN_ANSWER = `CASE WHEN ${WITHOUT_SIGN} GLOB '[0-9]*' AND ${WITHOUT_SIGN} NOT GLOB '*[^0-9.]*'
    AND a.answer NOT GLOB '*.*.*' THEN a.answer END`

/** SQL for an answer as it is compared with those that say nothing; NULL counts as none. */
const ANSWER_WORDS = "coalesce(replace(replace(lower(trim(a.answer)), '.', ''), '。', ''), '')"

const NO_ANSWERS =
  "SELECT lower(value) FROM json_each((SELECT value FROM report_settings WHERE name = 'reporting.no_answers'))"

const PLAYBOOK_RESULTS = `FROM playbook_results r JOIN conversations c ON c.kind = 'meeting' AND c.conversation_id = r.meeting_id
LEFT JOIN people p ON p.person_id = c.person_id LEFT JOIN playbooks b ON b.id = r.playbook_id AND b._deleted_at IS NULL`

export const CONVERSATION_VIEW_SQL = {
  record_conversations: `
SELECT r.object, r.record_id, c.kind, c.conversation_id, c.day, ${HOW_NAME} AS how
FROM _record_conversations p JOIN record_activity r ON r._id = p.record JOIN conversations c ON c._id = p.conversation`,
  conversation_threads: `
SELECT k.mail_id AS conversation_id, k.thread_id FROM message_copies k
WHERE k._deleted_at IS NULL AND k.mail_id IS NOT NULL AND k.thread_id <> '' AND NOT EXISTS (SELECT 1 FROM message_copies e
  WHERE e.mail_id = k.mail_id AND e.thread_id = k.thread_id AND e._deleted_at IS NULL AND e.id < k.id)`,
  mail_questions: `
SELECT a.conversation_id AS asked_mail_id,
  CAST((SELECT m.thread_id FROM messages m WHERE m.header_message_id = a.conversation_id) AS TEXT) AS thread_id,
  a.happened_at AS asked_at, l.happened_at AS last_asked_at,
  r.conversation_id AS answered_mail_id, r.happened_at AS answered_at, r.day AS answered_day,
  CAST((SELECT w.member_id FROM people w WHERE w.person_id = r.person_id) AS TEXT) AS answered_member_id,
  a.day, a.title AS subject, a.person_id, h.name, t.contact_id, t.company_id,
  CAST((SELECT c.company FROM companies c WHERE c.company_id = t.company_id) AS TEXT) AS company, a.side,
  CAST(CASE WHEN a.side = 'theirs' AND coalesce(t.contact_id, t.company_id) IS NOT NULL THEN 1 ELSE 0 END AS INTEGER) AS is_customer,
  CAST(round(max(0, julianday(coalesce(r.happened_at, ${AS_OF})) - julianday(a.happened_at)) * 24, 4) AS REAL) AS hours,
  CAST(round(coalesce(q.work_hours, max(0, ${workHoursTo(AS_OF)} - ${workHoursTo('a.happened_at')})), 4) AS REAL) AS work_hours,
  CAST(q.is_counted AS INTEGER) AS is_counted
FROM _mail_questions q JOIN conversations a ON a._id = q.asked JOIN conversations l ON l._id = q.last_asked
LEFT JOIN conversations r ON r._id = q.answered
LEFT JOIN people h ON h.person_id = a.person_id LEFT JOIN parties t ON t.party_id = h.party_id`,
  conversation_people: `
SELECT c.kind, c.conversation_id, c.day, p.person_id, p.party_id, CAST(coalesce(p.name, s.speaker_name) AS TEXT) AS name,
  CAST(coalesce(p.side, 'unknown') AS TEXT) AS side, p.member_id, p.contact_id, t.company_id, ${ROLE_NAME} AS role, c.is_external,
  c.is_group_email, c.is_readable,
  CAST(x.has_said AS INTEGER) AS wrote_or_spoke,
  CAST(CASE WHEN x.person > 0 THEN ${speakerRatio('= p.person_id')} ELSE s.speaker_ratio END AS REAL) AS speaker_ratio
FROM _conversation_people x JOIN conversations c ON c._id = x.conversation LEFT JOIN people p ON p._id = x.person
LEFT JOIN parties t ON t.party_id = p.party_id
LEFT JOIN meeting_speakers s ON x.person < 0 AND s.meeting_id = c.conversation_id AND s.position = ${positionOf('x.person')}`,
  member_conversations: `
SELECT m.id AS member_id, m.name AS member, c.kind, c.conversation_id, c.happened_at, c.day, ${ROLE_NAME} AS role,
  c.is_external, c.is_group_email, c.is_readable,
  CAST(julianday(c.day) - julianday(t.first_seen_day) AS INTEGER) AS days_since_first,
  CAST(100 * ${speakerRatio('IN (SELECT person_id FROM people WHERE party_id = m.id)')} AS REAL) AS talk_percent
FROM _conversation_people x JOIN conversations c ON c._id = x.conversation JOIN people p ON p._id = x.person
JOIN members m ON m.id = p.member_id LEFT JOIN parties t ON t.party_id = p.party_id
WHERE m._deleted_at IS NULL AND x.role IN (${MEMBER_ROLES}) AND NOT EXISTS (
  SELECT 1 FROM _conversation_people y JOIN people o ON o._id = y.person
  WHERE y.conversation = x.conversation AND y.role IN (${MEMBER_ROLES}) AND (y.role, y.person) < (x.role, x.person)
    AND o.member_id = m.id)`,
  deal_conversations: `
SELECT r.record_id AS deal_id, c.kind, c.conversation_id, c.happened_at, c.day, c.title, h.name, c.is_external, c.is_group_email,
  ${HOW_NAME} AS how
FROM record_activity r JOIN _record_conversations p ON p.record = r._id JOIN conversations c ON c._id = p.conversation
LEFT JOIN people h ON h.person_id = c.person_id
WHERE r.object = (SELECT value FROM report_settings WHERE name = 'crm.deal.object')`,
  record_people: `
SELECT r.object, r.record_id, c.kind, c.conversation_id, c.day, h.person_id, h.party_id, h.side, h.contact_id,
  ${ROLE_NAME} AS role, CAST(x.has_said AS INTEGER) AS wrote_or_spoke
FROM record_activity r JOIN _record_conversations p ON p.record = r._id JOIN conversations c ON c._id = p.conversation
JOIN _conversation_people x ON x.conversation = p.conversation JOIN people h ON h._id = x.person`,
  talk_ratios: `
SELECT c.conversation_id, c.happened_at, c.day, c.title, c.is_external, o.name AS owner,
  CAST(count(r.speaker_ratio) AS INTEGER) AS speakers, ${shareOf("'ours'")} AS ours_percent,
  ${shareOf("'theirs'")} AS theirs_percent, ${shareOf("'partner', 'unknown'")} AS other_percent
FROM conversations c LEFT JOIN people o ON o.person_id = c.person_id
LEFT JOIN conversation_people r ON r.kind = 'meeting' AND r.conversation_id = c.conversation_id
WHERE c.kind = 'meeting' GROUP BY c._id`,
  promises: `
SELECT i.meeting_id, i.id AS action_item_id, i.text AS promise, c.day, i.due_date AS due_day, i.completed AS is_completed,
  CAST(CASE WHEN i.completed IS NOT NULL AND i.completed = 0 AND i.due_date < ${TODAY} THEN 1 ELSE 0 END AS INTEGER) AS is_overdue,
  c.person_id, p.name AS owner, p.member_id,
  CAST(CASE WHEN c.person_id IS NULL THEN 'none' WHEN ${IS_WITHOUT_MEMBERS} THEN 'unknown' WHEN p.is_member_now = 1 THEN 'member' ELSE 'left' END AS TEXT) AS owner_state
FROM conversations c JOIN meeting_action_items i ON c.kind = 'meeting' AND i.meeting_id = c.conversation_id
LEFT JOIN people p ON p.person_id = c.person_id
WHERE c.is_readable = 1`,
  playbook_answers: `
SELECT * FROM (SELECT r.meeting_id, r.id AS playbook_result_id, a.id AS answer_id,
  CAST(coalesce(b.name, r.playbook_name) AS TEXT) AS playbook, CAST(coalesce(q.question, a.question) AS TEXT) AS question, a.answer, ${finiteReal(NUMBER_IN_ANSWER)} AS answer_number,
  CAST(CASE WHEN ${ANSWER_WORDS} = '' OR ${ANSWER_WORDS} IN (${NO_ANSWERS}) THEN 'unanswered' ELSE 'answered' END AS TEXT) AS state,
  c.day, c.person_id, p.member_id
${PLAYBOOK_RESULTS} JOIN talk_point_results a ON a.playbook_result_id = r.id
LEFT JOIN playbook_talk_points q ON q.playbook_id = b.id AND q.id = a.talk_point_id
WHERE r._deleted_at IS NULL AND c.is_readable = 1)
UNION ALL
SELECT r.meeting_id, r.id, q.id, b.name, q.question, NULL, NULL, 'missing', c.day, c.person_id, p.member_id
${PLAYBOOK_RESULTS} JOIN playbook_talk_points q ON q.playbook_id = b.id
WHERE r._deleted_at IS NULL AND c.is_readable = 1 AND r.created_at >= b.updated_at AND NOT EXISTS (
  SELECT 1 FROM talk_point_results a WHERE a.playbook_result_id = r.id AND a.talk_point_id = q.id)`,
}
