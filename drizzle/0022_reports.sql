CREATE TABLE `report_settings` ( /* One setting of the tables and views for reports, such as `crm.deal.amount`: which field of the CRM holds what, by the settings file or by a guess. */
	`name` text PRIMARY KEY NOT NULL /* Name of the setting, as in the settings file. */,
	`value` text /* Its value; a list or a table is JSON. NULL: there is none, or no field holds it. */,
	`is_guessed` integer NOT NULL /* 1 where the settings file says nothing. */,
	`why` text NOT NULL /* Why this value. */
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `report_settings_changes` ( /* One change of a row of `report_settings`, by the settings file or by a new guess. */
	`name` text NOT NULL /* Name of the setting. */,
	`changed_at` text NOT NULL /* When it changed. */,
	`old_value` text /* Its value before. NULL: there was none. */,
	`new_value` text /* Its value since. NULL: there is none. */,
	`why` text NOT NULL /* Why it changed. */,
	PRIMARY KEY(`name`, `changed_at`)
) STRICT, WITHOUT ROWID;
