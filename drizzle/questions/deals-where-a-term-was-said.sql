-- In which open deals was a term such as “other vendors” said in a meeting, the largest deals first?
--
-- Parameters:
--   term     what to look for, in any language; % stands for any text and _ for one character
--   period   when the meetings were
--
-- mentions counts entries of transcripts, each once however often the term is in it. Deals of which nothing says whether
-- they are open are here too: see outcome. Meetings that are withheld have no text. SQLite tells capital from small
-- letters outside ASCII, such as Ü and ü, and the other engines do not: write _ for such a letter to find both, as in
-- '%_bernahme%', or use parley search, which finds either.
WITH parameters AS (SELECT '%other vendors%' AS term, 'last 365 days' AS period)
SELECT d.deal, d.stage, d.owner, d.amount, d.currency, d.amount_reporting, count(DISTINCT t.meeting_id) AS meetings,
  count(*) AS mentions, max(c.day) AS last_said, d.outcome, d.deal_id
FROM parameters q
JOIN period_days p USING (period)
JOIN live_transcript_entries t ON lower(t.text) LIKE lower(q.term)
JOIN deal_conversations c ON c.kind = 'meeting' AND c.conversation_id = t.meeting_id AND c.day = p.day
JOIN deals d ON d.deal_id = c.deal_id AND d.outcome IN ('open', 'unknown')
GROUP BY d.deal, d.stage, d.owner, d.amount, d.currency, d.amount_reporting, d.outcome, d.deal_id
ORDER BY d.amount_reporting DESC NULLS LAST, d.amount DESC NULLS LAST, d.deal, d.deal_id;
