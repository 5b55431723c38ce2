-- What was deleted or withheld this month, so that the API no longer publishes it?
--
-- Parameters:
--   since, until   confirmed from this day on and before that one: this month
--
-- found_out is the time at which parley confirmed it. name is NULL where there was none, or where the content has been
-- purged since (setting retention.withdrawn_days). A meeting that is withheld (only its attendees may see it) counts
-- from the time at which that was confirmed; a meeting that was never open does not count.
WITH parameters AS (
  SELECT
    date('now', 'start of month') AS since,
    date('now', 'start of month', '+1 month') AS until
),
withdrawn AS (
  SELECT 'member' AS what, id, name, _deleted_at AS at FROM members WHERE _deleted_at IS NOT NULL
  UNION ALL SELECT 'team', id, name, _deleted_at FROM teams WHERE _deleted_at IS NOT NULL
  UNION ALL SELECT 'collection', id, name, _deleted_at FROM collections WHERE _deleted_at IS NOT NULL
  UNION ALL SELECT 'activity', id, type, _deleted_at FROM activities WHERE _deleted_at IS NOT NULL
  UNION ALL SELECT 'e-mail', id, subject, _deleted_at FROM messages WHERE _deleted_at IS NOT NULL
  UNION ALL SELECT 'meeting', id, title, _deleted_at FROM meetings WHERE _deleted_at IS NOT NULL
  UNION ALL SELECT 'meeting, withheld', id, title, _changed_at FROM meetings
    WHERE access = 'withheld' AND _deleted_at IS NULL AND _changed_at IS NOT NULL
  UNION ALL SELECT 'playbook', id, name, _deleted_at FROM playbooks WHERE _deleted_at IS NOT NULL
  UNION ALL SELECT 'playbook result', id, playbook_name, _deleted_at FROM playbook_results WHERE _deleted_at IS NOT NULL
  UNION ALL SELECT 'CRM object', name, label, _deleted_at FROM crm_objects WHERE _deleted_at IS NOT NULL
  UNION ALL SELECT object, id, fields ->> 'name', _deleted_at FROM crm_records WHERE _deleted_at IS NOT NULL
)
SELECT substr(w.at, 1, 16) AS found_out, w.what, w.name, w.id
FROM parameters p
CROSS JOIN withdrawn w ON w.at >= p.since AND w.at < p.until
ORDER BY w.at DESC, w.what, w.id;
