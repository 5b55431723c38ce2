ALTER TABLE `sync_tasks` ADD `failures` integer DEFAULT 0 NOT NULL;
