CREATE TABLE `sync_publications` ( /* One row per attempt to publish the warehouse to a target, complete or failed. An attempt that was stopped or killed has no row. Rows are kept as long as `sync_runs`; the newest complete one of each target stays. */
	`id` integer PRIMARY KEY NOT NULL /* Number of the attempt. */,
	`target` text NOT NULL /* Where the warehouse was published, without credentials. */,
	`publication` integer /* Number of the publication, as in the table `publications` of the target. NULL: it failed. */,
	`started_at` text NOT NULL /* When it started. */,
	`finished_at` text NOT NULL /* When it was complete or failed. */,
	`published_at` text /* The instant of the warehouse that all published tables show. NULL: it failed. */,
	`complete_as_of` text /* Everything published before this instant by the API is in the publication. NULL: it failed, or history was still loading. */,
	`fresh_as_of` text /* Up to when the newest data in the publication was read. NULL: it failed, or nothing had been read. */,
	`tables_changed` integer DEFAULT 0 NOT NULL /* Tables of which files were written. Unit: tables. */,
	`rows` integer DEFAULT 0 NOT NULL /* Rows of all tables in the target. Unit: rows. */,
	`files_written` integer DEFAULT 0 NOT NULL /* Data files that were written. Unit: files. */,
	`files_removed` integer DEFAULT 0 NOT NULL /* Files of earlier publications that were removed. Unit: files. */,
	`bytes_written` integer DEFAULT 0 NOT NULL /* Size of what was written. Unit: bytes. */,
	`error_code` text /* Code of the error for programs. NULL: the publication is complete. */,
	`error` text /* Error that ended the attempt. NULL: the publication is complete. */
) STRICT;
--> statement-breakpoint
CREATE INDEX `sync_publications_by_target` ON `sync_publications` (`target`,`finished_at`);
