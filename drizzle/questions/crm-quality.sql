-- Whose open deals lack an owner, an amount, a close date or a next step, or should be closed by now?
--
-- in_order counts the deals that lack nothing and whose owner is a member. outcome_unknown counts deals of which nothing
-- says whether they are open; they are in no other column.
SELECT owner, owner_state, sum(open_deals) AS open_deals,
  count(CASE WHEN outcome = 'open' AND amount IS NULL THEN 1 END) AS without_amount,
  count(CASE WHEN outcome = 'open' AND close_date IS NULL THEN 1 END) AS without_close_date,
  count(CASE WHEN is_past_close_date THEN 1 END) AS close_date_passed,
  count(CASE WHEN outcome = 'open' AND next_step IS NULL THEN 1 END) AS without_next_step,
  count(CASE WHEN outcome = 'open' AND owner_state = 'member' AND amount IS NOT NULL AND close_date IS NOT NULL
    AND next_step IS NOT NULL AND NOT is_past_close_date THEN 1 END) AS in_order,
  count(*) - sum(open_deals) AS outcome_unknown, owner_id
FROM deal_facts
WHERE outcome IN ('open', 'unknown')
GROUP BY owner_id, owner, owner_state
ORDER BY open_deals DESC, owner_id NULLS LAST;
