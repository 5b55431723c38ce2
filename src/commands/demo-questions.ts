/** What an analyst might ask first, with SQL that any SQLite shell runs as it stands. */
export const DEMO_QUESTIONS: readonly { question: string; sql: string }[] = [
  {
    question: 'What is in the file?',
    sql: `SELECT resource, state, rows_live, substr(newest_at, 1, 10) AS newest
FROM sync_status WHERE rows_live > 0 ORDER BY rows_live DESC LIMIT 8;`,
  },
  {
    question: 'Where do open deals stand, and what are they worth?',
    sql: `SELECT p.fields ->> 'name' AS pipeline, s.fields ->> 'name' AS stage,
  count(*) AS deals, printf('%,d', sum(d.fields ->> 'amount')) AS amount
FROM live_crm_records d
JOIN live_crm_records s ON s.object = 'stage' AND s.id = d.fields ->> 'stage_id'
JOIN live_crm_records p ON p.object = 'pipeline' AND p.id = s.fields ->> 'pipeline_id'
WHERE d.object = 'deal' AND NOT d.fields ->> 'is_closed'
GROUP BY p.id, s.id ORDER BY pipeline, s.fields ->> 'position';`,
  },
  {
    question: 'How much of the talking do we do, month by month?',
    sql: `SELECT substr(m.start_time, 1, 7) AS month, count(DISTINCT m.id) AS meetings,
  round(100.0 * sum(s.speaker_ratio) FILTER (WHERE a.is_internal) / sum(s.speaker_ratio)) AS "our share in %"
FROM live_meetings m
JOIN live_meeting_speakers s ON s.meeting_id = m.id
JOIN live_meeting_attendees a ON a.meeting_id = m.id AND a.name = s.speaker_name
GROUP BY month ORDER BY month DESC LIMIT 6;`,
  },
  {
    question: 'Who outside writes most with us?',
    sql: `SELECT substr(handle, instr(handle, '@') + 1) AS domain,
  count(DISTINCT header_message_id) AS mails, count(DISTINCT handle) AS people
FROM message_participants
WHERE role = 'FROM' AND handle NOT IN (SELECT email FROM members)
GROUP BY domain HAVING people > 1 ORDER BY mails DESC LIMIT 5;`,
  },
  {
    question: 'In which meetings was a competitor the subject, and who brought it up?',
    sql: `SELECT substr(m.start_time, 1, 10) AS day, t.speaker_name AS speaker, substr(t.text, 1, 70) AS said
FROM live_transcript_entries t JOIN live_meetings m ON m.id = t.meeting_id
WHERE t.text LIKE '%compet%' OR t.text LIKE '%競合%'
ORDER BY m.start_time DESC LIMIT 5;`,
  },
  {
    question: 'What did we promise and not do yet?',
    sql: `SELECT i.due_date, m.owner_name AS owner, i.text
FROM live_meeting_action_items i JOIN live_meetings m ON m.id = i.meeting_id
WHERE NOT i.completed AND i.due_date IS NOT NULL
ORDER BY i.due_date DESC LIMIT 5;`,
  },
]
