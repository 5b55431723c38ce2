CREATE TABLE `data_dictionary` (
	`table_name` text NOT NULL,
	`column_name` text NOT NULL,
	`position` integer NOT NULL,
	`type` text NOT NULL,
	`null_meaning` text,
	`description` text NOT NULL,
	`source_field` text,
	`unit` text,
	`example` text,
	PRIMARY KEY(`table_name`, `column_name`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
ALTER TABLE `crm_objects` ADD `table_name` text;
--> statement-breakpoint
ALTER TABLE `crm_fields` ADD `column_name` text;
