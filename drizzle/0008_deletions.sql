ALTER TABLE `sync_resources` ADD `deleted_since` text;
--> statement-breakpoint
ALTER TABLE `sync_absences` ADD `means` text DEFAULT 'absent' NOT NULL;
--> statement-breakpoint
INSERT OR IGNORE INTO `sync_tasks` (`feed`, `key`, `sort_at`, `due_at`)
  SELECT 'transcripts.read', `id`, `start_time`, strftime('%Y-%m-%dT%H:%M:%fZ', 'now', (abs(random()) % 604800) || ' seconds')
  FROM `meetings` WHERE `transcript_state` = 'present' AND `_deleted_at` IS NULL;
