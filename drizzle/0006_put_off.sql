ALTER TABLE `sync_segments` ADD `attempts` integer DEFAULT 0 NOT NULL;
--> statement-breakpoint
ALTER TABLE `sync_segments` ADD `retry_at` text;
