CREATE TABLE `sync_changed_parts` ( /* Which parts of the tables have changed, and when last, so that a publication compares only these. */
	`table_name` text NOT NULL,
	`part` text NOT NULL,
	`change` integer NOT NULL,
	PRIMARY KEY(`table_name`, `part`)
) STRICT, WITHOUT ROWID;
