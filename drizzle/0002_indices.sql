DROP INDEX `activities_by_time`;
--> statement-breakpoint
CREATE INDEX `activities_by_time` ON `activities` ("occurred_at" DESC,`_deleted_at`);
--> statement-breakpoint
DROP INDEX `access_logs_by_time`;
--> statement-breakpoint
CREATE INDEX `access_logs_by_time` ON `access_logs` ("occurred_at" DESC,`_deleted_at`);
--> statement-breakpoint
ALTER TABLE `sync_segments` ADD `unavailable_since` text;
--> statement-breakpoint
CREATE INDEX `sync_tasks_open` ON `sync_tasks` (`feed`,`round`,`waiting`,`deadline`) WHERE waiting OR round = 0;
--> statement-breakpoint
CREATE INDEX `sync_runs_open` ON `sync_runs` (`id`) WHERE ended_at IS NULL;
