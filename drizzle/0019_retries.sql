ALTER TABLE `sync_segments` ADD `tries` integer DEFAULT 0 NOT NULL;
--> statement-breakpoint
ALTER TABLE `sync_segments` ADD `try_at` text;
--> statement-breakpoint
ALTER TABLE `sync_tasks` ADD `tries` integer DEFAULT 0 NOT NULL;
--> statement-breakpoint
ALTER TABLE `sync_tasks` ADD `try_at` text;
--> statement-breakpoint
CREATE INDEX `sync_tasks_tried` ON `sync_tasks` (`feed`,`try_at`) WHERE tries > 0;
