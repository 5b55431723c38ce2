export interface DemoQuestion {
  question: string
  /** Runs as it stands in any SQLite shell from 3.38 on. */
  sql: string
}

/** What an analyst might ask first. Each answer takes something from another corner of the warehouse. */
export const DEMO_QUESTIONS: readonly DemoQuestion[] = [
  {
    question: 'What is in the file, and how fresh is it?',
    sql: `SELECT resource, state, rows_live, substr(newest_at, 1, 16) AS newest,
  substr(complete_as_of, 1, 19) AS complete_as_of
FROM sync_status WHERE rows_live > 100 ORDER BY rows_live DESC;`,
  },
  {
    question: 'Where do the open deals stand, and what are they worth?',
    sql: `SELECT p.fields ->> 'name' AS pipeline, s.fields ->> 'name' AS stage, count(*) AS deals,
  printf('%,d', sum(d.fields ->> 'amount')) AS amount,
  count(*) - count(d.fields ->> 'amount') AS without_amount
FROM live_crm_records d
JOIN live_crm_records s ON s.object = 'stage' AND s.id = d.fields ->> 'stage_id'
JOIN live_crm_records p ON p.object = 'pipeline' AND p.id = d.fields ->> 'pipeline_id'
WHERE d.object = 'deal' AND NOT d.fields ->> 'is_closed'
GROUP BY p.id, s.id ORDER BY p.fields ->> 'position', s.fields ->> 'position';`,
  },
  {
    question: 'Which deals moved last, who moved them, and where are they now?',
    sql: `SELECT substr(a.occurred_at, 1, 10) AS moved, d.fields ->> 'name' AS deal,
  s.fields ->> 'name' AS stage_now, coalesce(m.name, 'unknown') AS moved_by
FROM live_activities a
JOIN live_activity_links l ON l.activity_id = a.id
  AND l.context_type = 'deal' AND l.origin = 'DIRECT'
JOIN live_crm_records d ON d.object = 'deal' AND d.id = l.context_id
JOIN live_crm_records s ON s.object = 'stage' AND s.id = d.fields ->> 'stage_id'
LEFT JOIN members m ON m.id = a.actor_id
WHERE a.source_type = 'OBJECT_CHANGE_EVENT'
ORDER BY a.occurred_at DESC, deal LIMIT 5;`,
  },
  {
    question: 'In which of the largest open deals did a meeting speak of other vendors?',
    sql: `SELECT d.fields ->> 'name' AS deal, printf('%,d', d.fields ->> 'amount') AS amount,
  count(DISTINCT m.id) AS meetings, substr(max(m.start_time), 1, 10) AS last_one
FROM live_transcript_entries t
JOIN live_meetings m ON m.id = t.meeting_id
JOIN live_activities a ON a.source_type = 'MEETING' AND a.source_id = m.id
JOIN live_activity_links l ON l.activity_id = a.id AND l.context_type = 'deal'
JOIN live_crm_records d ON d.object = 'deal' AND d.id = l.context_id
WHERE t.text LIKE '%other vendors%' AND NOT d.fields ->> 'is_closed'
GROUP BY d.id ORDER BY d.fields ->> 'amount' DESC LIMIT 5;`,
  },
  {
    question: 'Which customers asked for the price (価格) in Japanese, and at what minute?',
    sql: `SELECT substr(m.start_time, 1, 10) AS day, m.title, t.speaker_name AS asked_by,
  printf('%d:%02d', t.elapsed_seconds / 60, t.elapsed_seconds % 60) AS at, t.text
FROM live_transcript_entries t JOIN live_meetings m ON m.id = t.meeting_id
WHERE t.text LIKE '%価格%' AND t.contact_id IS NOT NULL
ORDER BY m.start_time DESC, t.position LIMIT 4;`,
  },
  {
    // The members' domains, deleted members included: who left is no stranger.
    question: 'Who outside writes to us most?',
    sql: `SELECT p.domain, coalesce(c.fields ->> 'name', 'no company in the CRM') AS company,
  count(DISTINCT p.header_message_id) AS mails, count(DISTINCT p.handle) AS people
FROM (SELECT *, lower(substr(handle, instr(handle, '@') + 1)) AS domain
  FROM live_message_participants WHERE role = 'FROM') p
LEFT JOIN live_crm_records c ON c.object = 'company' AND c.fields ->> 'domain' = p.domain
WHERE p.domain NOT IN (SELECT lower(substr(email, instr(email, '@') + 1)) FROM members)
GROUP BY p.domain ORDER BY mails DESC, p.domain LIMIT 5;`,
  },
  {
    question: 'Is last month complete, and as of when?',
    sql: `SELECT resource, count(*) AS segments, count(listed_at) AS read_to_the_end,
  substr(min(listed_at), 1, 19) AS complete_as_of
FROM sync_coverage
WHERE coalesce(from_at, '') < date('now', 'start of month')
  AND coalesce(to_at, '~') > date('now', 'start of month', '-1 month')
GROUP BY resource;`,
  },
]
