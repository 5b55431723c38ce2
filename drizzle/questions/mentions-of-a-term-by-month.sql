-- How often was a term such as “other vendors” said in meetings, month by month?
--
-- Parameters:
--   term     what to look for, in any language; % stands for any text and _ for one character
--   period   which months
--
-- An entry of a transcript counts once, however often the term is in it. by_contacts: of these, entries whose speaker
-- the API names as a contact. meetings: those with a mention; percent is of the meetings with a transcript. The text of
-- every transcript is read: parley search finds a term faster. SQLite tells capital from small letters outside ASCII,
-- such as Ü and ü, and the other engines do not: write _ for such a letter to find both, as in '%_bernahme%', or use
-- parley search, which finds either.
WITH parameters AS (SELECT '%other vendors%' AS term, 'last 12 months' AS period)
SELECT p.month, count(t.meeting_id) AS mentions, count(t.contact_id) AS by_contacts,
  count(DISTINCT t.meeting_id) AS meetings, count(DISTINCT m.id) AS meetings_with_transcript,
  round(1e2 * count(DISTINCT t.meeting_id) / count(DISTINCT m.id), 1) AS percent
FROM parameters q
JOIN period_days p USING (period)
JOIN conversations c ON c.day = p.day AND c.kind = 'meeting'
JOIN live_meetings m ON m.id = c.conversation_id AND m.access = 'open' AND m.transcript_state = 'present'
LEFT JOIN live_transcript_entries t ON lower(t.text) LIKE lower(q.term) AND t.meeting_id = m.id
GROUP BY p.month
ORDER BY p.month;
