CREATE TABLE `data_dictionary` ( /* What every column of every table and view means, including this one. The program parley created this file from the API of a conversation-intelligence product and keeps it up to date. */
	`table_name` text NOT NULL /* Name of the table or view. */,
	`column_name` text NOT NULL /* Name of the column. */,
	`position` integer NOT NULL /* 0-based position of the column within its table. */,
	`type` text NOT NULL /* `text`, `timestamp` (text, UTC, always 24 characters), `date` (text, `2026-06-30`), `json` (text), `integer`, `boolean` (0 or 1), `real`, or `any` (a number, or text where a number would lose digits). A timestamp of a CRM field that cannot be parsed is stored as sent. */,
	`null_meaning` text /* What NULL means in the column. */,
	`description` text NOT NULL /* What the value means. */,
	`source_field` text /* API field that the value comes from, with `[]` after each list in its path. NULL: parley sets the value. */,
	`unit` text /* Unit of a quantity; `not stated` where the API does not state it. NULL: the value is not a quantity. */,
	`example` text /* A made-up value in its stored form. NULL: the column is a field of your CRM. */,
	PRIMARY KEY(`table_name`, `column_name`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
ALTER TABLE `crm_objects` ADD `table_name` text /* Typed table of the object's records, such as `crm_deal`. NULL: the object has no typed table yet, or `crm.tables` is off. */;
--> statement-breakpoint
ALTER TABLE `crm_fields` ADD `column_name` text /* Column of the field in the typed table (`crm_objects.table_name`). NULL: the field has no column, or none yet. Its values are in `crm_records.fields`. */;
