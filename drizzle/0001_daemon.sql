CREATE TABLE `sync_erasures` ( /* The earlier name of `sync_purge_queue`. */
	`table_name` text NOT NULL,
	`scope` text DEFAULT '' NOT NULL,
	`key` text NOT NULL,
	`withdrawn_at` text NOT NULL,
	PRIMARY KEY(`table_name`, `scope`, `key`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `sync_erasures_by_time` ON `sync_erasures` (`withdrawn_at`);
--> statement-breakpoint
CREATE TABLE `sync_arrivals` ( /* How late rows became visible. */
	`resource` text NOT NULL,
	`bucket` integer NOT NULL,
	`rows` integer DEFAULT 0 NOT NULL,
	`longest_ms` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`resource`, `bucket`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `sync_requests` ( /* Requests of other processes to the process that writes. */
	`id` integer PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`resource` text NOT NULL,
	`asked_at` text NOT NULL,
	`done_at` text
) STRICT;
--> statement-breakpoint
ALTER TABLE `sync_resources` ADD `held_round` integer;
--> statement-breakpoint
ALTER TABLE `sync_resources` ADD `deleted_in_round` integer DEFAULT 0 NOT NULL;
--> statement-breakpoint
CREATE INDEX `sync_tasks_by_due` ON `sync_tasks` (`feed`,`due_at`);
