ALTER TABLE `sync_segments` ADD `pass_ms` integer;
