-- Which meetings with people from outside are linked to no CRM record?
--
-- Parameters:
--   since, until   meetings that began from this day on and before that one: the last 90 days
--   external_only  1: only meetings with an attendee who is not on our side; 0: all of them
--
-- outsiders counts the attendees who are not on our side, as the API says; attendees without that information do not
-- count. Linked means what the API calls crm_integrations. Companies and contacts that the product itself found are
-- shown, since they say where the meeting belongs. Meetings that the API withholds are left out: their links are
-- unknown.
WITH parameters AS (
  SELECT
    date('now', '-90 days') AS since,
    date('now', '+1 day') AS until,
    1 AS external_only
),
unlinked AS (
  SELECT m.*, p.external_only,
    (SELECT count(*) FROM live_meeting_attendees a WHERE a.meeting_id = m.id AND a.is_internal = 0) AS outsiders
  FROM parameters p
  CROSS JOIN live_meetings m ON m.start_time >= p.since AND m.start_time < p.until
  WHERE m.access = 'open' AND NOT EXISTS (SELECT 1 FROM live_meeting_crm_records c WHERE c.meeting_id = m.id)
)
SELECT
  substr(start_time, 1, 16) AS began,
  coalesce(title, '(no title)') AS meeting,
  owner_name AS owner,
  outsiders,
  (SELECT group_concat(display_name, ', ') FROM (
     SELECT o.display_name FROM live_meeting_related_objects o WHERE o.meeting_id = unlinked.id ORDER BY o.position))
    AS belongs_to,
  url
FROM unlinked
WHERE outsiders > 0 OR NOT external_only
ORDER BY start_time DESC, id;
