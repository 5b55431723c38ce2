CREATE TABLE `data_dictionary` ( /* What every column of every table and view means, this one included. The program parley made this file from the API of a conversation-intelligence product and keeps it true to it. */
	`table_name` text NOT NULL /* Name of the table or view. */,
	`column_name` text NOT NULL /* Name of the column. */,
	`position` integer NOT NULL /* 0-based place of the column within its table. */,
	`type` text NOT NULL /* `text`, `timestamp` (text, UTC, always 24 characters), `date` (text, `2026-06-30`), `json` (text), `integer`, `boolean` (0 or 1), `real`, or `any` (a number, and text where it has more digits than a number keeps). A timestamp of a CRM field that does not parse stands as it was sent. */,
	`null_meaning` text /* What NULL means there. */,
	`description` text NOT NULL /* What the value means. */,
	`source_field` text /* Field of the API that the value comes from; `[]` stands after every list on the way. NULL: the value is of parley’s own making. */,
	`unit` text /* What a quantity is measured in; `not stated` where the API does not say. NULL: the value is no quantity. */,
	`example` text /* A made-up value as it is stored. NULL: it is a field of your CRM. */,
	PRIMARY KEY(`table_name`, `column_name`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
ALTER TABLE `crm_objects` ADD `table_name` text /* Typed table of its records, such as `crm_deal`. NULL: it has none yet, or `crm.tables` is off. */;
--> statement-breakpoint
ALTER TABLE `crm_fields` ADD `column_name` text /* Column of the typed table (`crm_objects.table_name`) that holds it. NULL: it has none (yet), and is in `crm_records.fields` alone. */;
