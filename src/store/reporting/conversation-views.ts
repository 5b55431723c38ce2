import { HOW } from './conversations.ts'
import { AS_OF } from './periods.ts'
import { localDay } from './roles-in-table.ts'

/** The views over what is derived from conversations, whose tables have internal numbers in place of long keys. */

const HOW_NAME = `CAST(CASE p.how ${Object.entries(HOW)
  .map(([name, how]) => `WHEN ${how} THEN '${name}'`)
  .join(' ')} END AS TEXT)`

const RECORD_CONVERSATIONS = `
SELECT r.object, r.record_id, c.kind, c.conversation_id, c.day, ${HOW_NAME} AS how
FROM _record_conversations p JOIN record_activity r ON r._id = p.record JOIN conversations c ON c._id = p.conversation`

const CONVERSATION_THREADS = `
SELECT DISTINCT k.mail_id AS conversation_id, k.thread_id FROM message_copies k
WHERE k._deleted_at IS NULL AND k.mail_id IS NOT NULL AND k.thread_id <> ''`

/** Working hours from the first day of the calendar to an instant. */
const workHoursTo = (instant: string) => `(SELECT d.work_hours_before
    + coalesce(max(0, julianday(min(d.work_to, n.instant)) - julianday(d.work_from)) * 24, 0)
  FROM (SELECT ${instant} AS instant) n JOIN calendar d ON d.day = ${localDay('n.instant')})`

const MAIL_QUESTIONS = `
SELECT a.conversation_id AS asked_mail_id,
  CAST((SELECT m.thread_id FROM messages m WHERE m.header_message_id = a.conversation_id) AS TEXT) AS thread_id,
  a.happened_at AS asked_at, l.happened_at AS last_asked_at,
  r.conversation_id AS answered_mail_id, r.happened_at AS answered_at, a.day, a.person_id, a.side,
  CAST(round((julianday(coalesce(r.happened_at, ${AS_OF})) - julianday(a.happened_at)) * 24, 4) AS REAL) AS hours,
  CAST(round(coalesce(q.work_hours, ${workHoursTo(AS_OF)} - ${workHoursTo('a.happened_at')}), 4) AS REAL) AS work_hours,
  CAST(q.is_counted AS INTEGER) AS is_counted
FROM _mail_questions q JOIN conversations a ON a._id = q.asked JOIN conversations l ON l._id = q.last_asked
LEFT JOIN conversations r ON r._id = q.answered`

export const CONVERSATION_VIEWS = {
  record_conversations: RECORD_CONVERSATIONS.trim(),
  conversation_threads: CONVERSATION_THREADS.trim(),
  mail_questions: MAIL_QUESTIONS.trim(),
}
