CREATE TABLE `sync_suspicions` ( /* Suspected deletions: rows that the API has denied once or twice and that are not deleted yet. */
	`table_name` text NOT NULL,
	`scope` text DEFAULT '' NOT NULL,
	`key` text NOT NULL,
	`missing_since` text NOT NULL,
	`confirmed` integer DEFAULT 0 NOT NULL,
	`means` text DEFAULT 'absent' NOT NULL,
	PRIMARY KEY(`table_name`, `scope`, `key`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO sync_suspicions (table_name, scope, key, missing_since, confirmed, means)
  SELECT table_name, scope, key, missing_since, confirmed, means FROM sync_absences;
--> statement-breakpoint
DROP TABLE `sync_absences`;
--> statement-breakpoint
CREATE TABLE `sync_purge_queue` ( /* Deleted or withheld rows whose content is not purged yet. */
	`table_name` text NOT NULL,
	`scope` text DEFAULT '' NOT NULL,
	`key` text NOT NULL,
	`withdrawn_at` text NOT NULL,
	PRIMARY KEY(`table_name`, `scope`, `key`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO sync_purge_queue (table_name, scope, key, withdrawn_at)
  SELECT table_name, scope, key, withdrawn_at FROM sync_erasures;
--> statement-breakpoint
DROP TABLE `sync_erasures`;
--> statement-breakpoint
CREATE INDEX `sync_purge_queue_by_time` ON `sync_purge_queue` (`withdrawn_at`);
