ALTER TABLE `sync_gates` ADD `tries` integer DEFAULT 0 NOT NULL;
