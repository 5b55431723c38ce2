-- In which open deals was a term such as “other vendors” said in a meeting, the largest deals first?
--
-- Parameters:
--   term     what to look for, in any language; % stands for any text and _ for one character
--   period   when the meetings were
--
-- mentions counts entries of transcripts, each once however often the term is in it. Deals of which nothing says whether
-- they are open are here too: see outcome. Meetings that are withheld have no text.
WITH parameters AS (SELECT '%other vendors%' AS term, 'last 365 days' AS period),
said AS (
  SELECT t.meeting_id, c.day, count(*) AS mentions
  FROM parameters q
  JOIN periods p ON p.period = q.period
  JOIN conversations c ON c.kind = 'meeting' AND c.day >= p.from_day AND c.day < p.to_day
  JOIN live_transcript_entries t ON t.meeting_id = c.conversation_id AND lower(t.text) LIKE lower(q.term)
  GROUP BY t.meeting_id, c.day
)
SELECT d.deal, d.stage, d.owner, d.amount, d.currency, d.amount_reporting, count(*) AS meetings,
  sum(s.mentions) AS mentions, max(s.day) AS last_said, d.outcome, d.deal_id
FROM said s
JOIN record_conversations r ON r.object = 'deal' AND r.kind = 'meeting' AND r.conversation_id = s.meeting_id
JOIN deals d ON d.deal_id = r.record_id
WHERE d.outcome IN ('open', 'unknown')
GROUP BY d.deal, d.stage, d.owner, d.amount, d.currency, d.amount_reporting, d.outcome, d.deal_id
ORDER BY d.amount_reporting DESC NULLS LAST, d.amount DESC NULLS LAST, d.deal, d.deal_id;
