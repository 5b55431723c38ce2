CREATE TABLE `sync_days` ( /* How many rows of each resource were written on each day (UTC), for a year. */
	`day` text NOT NULL /* The day, in UTC. */,
	`resource` text NOT NULL /* Name of the resource. */,
	`rows_new` integer DEFAULT 0 NOT NULL /* Rows that were stored for the first time. Unit: rows. */,
	`rows_changed` integer DEFAULT 0 NOT NULL /* Stored rows that changed. Unit: rows. */,
	`rows_deleted` integer DEFAULT 0 NOT NULL /* Rows whose deletion was confirmed. Unit: rows. */,
	PRIMARY KEY(`day`, `resource`)
) STRICT, WITHOUT ROWID;
