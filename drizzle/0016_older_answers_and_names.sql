CREATE TABLE `sync_older_answers` ( /* Rows of which the API last sent an older state than the stored one. */
	`table_name` text NOT NULL,
	`scope` text DEFAULT '' NOT NULL,
	`key` text NOT NULL,
	`since` text NOT NULL,
	PRIMARY KEY(`table_name`, `scope`, `key`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
ALTER TABLE `sync_tasks` ADD `named_at` text;
--> statement-breakpoint
INSERT OR IGNORE INTO sync_tasks (feed, key, due_at)
  SELECT 'meetings.detail', id, '1970-01-01T00:00:00.000Z' FROM meetings
  WHERE _deleted_at IS NOT NULL AND (
    EXISTS (SELECT 1 FROM activities WHERE source_id = meetings.id AND _deleted_at IS NULL)
    OR EXISTS (SELECT 1 FROM collection_meetings WHERE meeting_id = meetings.id));
--> statement-breakpoint
INSERT OR IGNORE INTO sync_tasks (feed, key, due_at)
  SELECT 'playbooks.detail', id, '1970-01-01T00:00:00.000Z' FROM playbooks
  WHERE _deleted_at IS NOT NULL
    AND id IN (SELECT playbook_id FROM playbook_results WHERE _deleted_at IS NULL);
