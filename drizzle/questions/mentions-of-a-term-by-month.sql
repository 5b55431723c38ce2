-- How often was a term such as “other vendors” said in meetings, month by month?
--
-- Parameters:
--   term           what to look for, in any language; as in LIKE, % stands for any text and _ for one character
--   since, until   meetings that began from this day on and before that one: the last twelve months
--
-- An entry of a transcript counts once, however often the term is in it. by_contacts: of these, entries whose speaker
-- the API names as a contact. meetings: those with a mention; percent is of the meetings with a transcript.
-- Uses the full-text index, which is quick from three characters on; entries that are not indexed yet are scanned.
-- If the index is turned off (search.enabled), put
-- SELECT t.meeting_id, t.contact_id
-- FROM parameters p CROSS JOIN transcript_entries t ON t.text LIKE '%' || p.term || '%'
-- in place of the query inside said. That scans every transcript.
WITH parameters AS (
  SELECT
    'other vendors' AS term,
    date('now', 'start of month', '-11 months') AS since,
    date('now', '+1 day') AS until
),
said AS (
  SELECT t.meeting_id, t.contact_id
  FROM parameters p
  CROSS JOIN search_transcripts s ON s.text LIKE '%' || p.term || '%'
  CROSS JOIN transcript_entries t ON t._id = s.rowid
  UNION ALL
  SELECT t.meeting_id, t.contact_id
  FROM parameters p
  CROSS JOIN transcript_entries t ON t.text LIKE '%' || p.term || '%'
    AND t._id > (SELECT indexed_up_to FROM search_indices WHERE name = 'search_transcripts')
),
by_meeting AS (
  SELECT meeting_id, count(*) AS mentions, count(contact_id) AS by_contacts
  FROM said
  GROUP BY meeting_id
)
SELECT
  substr(m.start_time, 1, 7) AS month,
  coalesce(sum(b.mentions), 0) AS mentions,
  coalesce(sum(b.by_contacts), 0) AS by_contacts,
  count(b.meeting_id) AS meetings,
  count(*) AS meetings_with_transcript,
  round(100.0 * count(b.meeting_id) / count(*), 1) AS percent
FROM parameters p
CROSS JOIN live_meetings m ON m.start_time >= p.since AND m.start_time < p.until
  AND m.access = 'open' AND m.transcript_state = 'present'
LEFT JOIN by_meeting b ON b.meeting_id = m.id
GROUP BY month
ORDER BY month;
