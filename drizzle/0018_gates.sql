CREATE TABLE `sync_gates` ( /* What is closed, so that reads that are due wait; see `sync_status`. What is open has no row. */
	`what` text PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`since` text NOT NULL,
	`until` text NOT NULL,
	`reason` text NOT NULL,
	`resources` text NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO sync_gates (what, kind, since, until, reason, resources)
  SELECT 'api', value ->> 'kind', value ->> 'since', value ->> 'next_try_at', value ->> 'reason', value -> 'resources'
  FROM (SELECT value FROM sync_meta WHERE key = 'unreachable' AND json_valid(value))
  WHERE value ->> 'kind' IN ('silent', 'refused', 'asked-to-wait', 'day-used-up')
    AND value ->> 'since' IS NOT NULL AND value ->> 'next_try_at' IS NOT NULL
    AND value ->> 'reason' IS NOT NULL AND json_type(value, '$.resources') = 'array';
--> statement-breakpoint
DELETE FROM sync_meta WHERE key = 'unreachable';
