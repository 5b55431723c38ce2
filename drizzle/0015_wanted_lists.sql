ALTER TABLE `sync_segments` ADD `pass_wanted_at` text;
--> statement-breakpoint
ALTER TABLE `sync_segments` ADD `listed_rows` integer;
--> statement-breakpoint
ALTER TABLE `sync_segments` ADD `wanted_at` text;
