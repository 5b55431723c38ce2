-- What was deleted or withheld this month, so that the API no longer publishes it?
--
-- Parameters:
--   period   when parley confirmed it
--
-- name is NULL where there was none, for records of the CRM, and where the content has been purged since (setting
-- retention.withdrawn_days). A meeting that is withheld (only its attendees may see it) counts from the time at which
-- that was confirmed; a meeting that was never open does not count.
WITH parameters AS (SELECT 'this month' AS period),
withdrawn AS (
  SELECT 'member' AS what, id, name, _deleted_at AS found_out FROM members
  UNION ALL SELECT 'team', id, name, _deleted_at FROM teams
  UNION ALL SELECT 'collection', id, name, _deleted_at FROM collections
  UNION ALL SELECT 'activity', id, type, _deleted_at FROM activities
  UNION ALL SELECT 'e-mail', id, subject, _deleted_at FROM messages
  UNION ALL SELECT 'meeting', id, title, _deleted_at FROM meetings
  UNION ALL SELECT 'meeting, withheld', id, title, _changed_at FROM meetings
    WHERE access = 'withheld' AND _deleted_at IS NULL
  UNION ALL SELECT 'playbook', id, name, _deleted_at FROM playbooks
  UNION ALL SELECT 'playbook result', id, playbook_name, _deleted_at FROM playbook_results
  UNION ALL SELECT 'CRM object', name, label, _deleted_at FROM crm_objects
  UNION ALL SELECT object, id, NULL, _deleted_at FROM crm_records
)
SELECT w.found_out, w.what, w.name, w.id
FROM parameters
JOIN periods p USING (period)
JOIN withdrawn w ON w.found_out >= p.utc_from AND w.found_out < p.utc_to
ORDER BY w.found_out DESC, w.what, w.id;
