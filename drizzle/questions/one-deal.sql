-- What happened in one deal, in order: e-mails, meetings and changes?
--
-- Parameters:
--   deal           the deal's id; by default the deal of the newest activity of any deal
--   name_field     the field with the name of the records that a deal points at, such as its stage
--
-- Copies of one e-mail have an activity each and are shown once. Where a copy is not stored, its activity has a line:
-- it may be of an e-mail that is shown as well. How a field changed is known if parley observed it, at
-- the time at which it did. For earlier changes the API says only that something changed.
WITH parameters AS (
  SELECT
    (SELECT min(d.id) FROM live_activities a
     CROSS JOIN activity_links l ON l.activity_id = a.id AND l.context_type = 'deal'
     CROSS JOIN live_crm_records d ON d.object = 'deal' AND d.id = l.context_id
     WHERE a.occurred_at =
       (SELECT a.occurred_at FROM live_activities a
        CROSS JOIN activity_links l ON l.activity_id = a.id AND l.context_type = 'deal'
        CROSS JOIN live_crm_records d ON d.object = 'deal' AND d.id = l.context_id
        ORDER BY a.occurred_at DESC LIMIT 1)) AS deal,
    'name' AS name_field
),
changed AS (
  SELECT c.observed_at, p.name_field, coalesce(f.label, c.field) AS label,
    f.relation_target_object AS target,
    iif(json_type(c.old_value) = 'text', c.old_value ->> '$', nullif(CAST(c.old_value AS TEXT), 'null')) AS old,
    iif(json_type(c.new_value) = 'text', c.new_value ->> '$', nullif(CAST(c.new_value AS TEXT), 'null')) AS new
  FROM parameters p
  CROSS JOIN live_crm_records d ON d.object = 'deal' AND d.id = p.deal
  CROSS JOIN crm_record_changes c ON c.object = 'deal' AND c.record_id = d.id
  LEFT JOIN crm_fields f ON f.object = 'deal' AND f.name = c.field
),
told AS (
  SELECT min(a.occurred_at) AS at,
    CASE max(a.source_type)
      WHEN 'MESSAGE' THEN CASE WHEN max(c.id) IS NULL THEN 'e-mail, not stored' ELSE 'e-mail' END
      WHEN 'MEETING' THEN 'meeting' ELSE 'change of a record' END AS what,
    max(coalesce(e.subject, m.title, '')) AS about,
    max(coalesce(x.display_name, x.handle, m.owner_name, w.name, '')) AS who,
    max(m.url) AS url
  FROM parameters p
  CROSS JOIN live_crm_records d ON d.object = 'deal' AND d.id = p.deal
  CROSS JOIN activity_links l ON l.context_type = 'deal' AND l.context_id = d.id
  JOIN live_activities a ON a.id = l.activity_id
  LEFT JOIN live_message_copies c ON a.source_type = 'MESSAGE' AND c.id = a.source_id
  LEFT JOIN live_messages e ON e.header_message_id = c.mail_id
  LEFT JOIN message_copy_participants x ON x.message_id = e.id AND x.position = 0 AND x.role = 'FROM'
  LEFT JOIN live_meetings m ON a.source_type = 'MEETING' AND m.id = a.source_id AND m.access = 'open'
  LEFT JOIN live_members w ON w.id = a.actor_id
  GROUP BY coalesce(e.header_message_id, m.id, a.id)
  UNION ALL
  SELECT c.observed_at, 'change of a field',
    c.label || ': ' || coalesce(o.fields ->> c.name_field, og.name, c.old, 'none')
      || ' → ' || coalesce(n.fields ->> c.name_field, ng.name, c.new, 'none'),
    '', NULL
  FROM changed c
  LEFT JOIN live_crm_records o ON o.object = c.target AND o.id = c.old
  LEFT JOIN live_crm_records n ON n.object = c.target AND n.id = c.new
  LEFT JOIN live_members og ON c.target IS NOT NULL AND og.id = c.old
  LEFT JOIN live_members ng ON c.target IS NOT NULL AND ng.id = c.new
)
SELECT substr(told.at, 1, 16) AS at, what, about, who, url
FROM told
ORDER BY told.at, what, about, who, url;
