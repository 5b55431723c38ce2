CREATE TABLE `message_participants` ( /* Senders and receivers of each live e-mail: the union over its live copies by role and address. Those of a deleted e-mail are only in `message_copy_participants`. */
	`header_message_id` text NOT NULL /* E-mail (`messages.header_message_id`). */,
	`role` text NOT NULL /* `FROM`, `TO`, `CC` or `BCC`. */,
	`handle` text NOT NULL /* Mail address. */,
	`display_name` text /* Name from the first copy that shows one. NULL: no copy shows one. */,
	`contact_id` text /* CRM contact (`crm_records.id`), from the first copy that knows it. NULL: no copy knows one. */,
	PRIMARY KEY(`header_message_id`, `role`, `handle`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
DROP INDEX `message_copies_by_header`;
--> statement-breakpoint
ALTER TABLE `message_copies` ADD `mail_id` text GENERATED ALWAYS AS (coalesce(nullif(header_message_id, ''), 'id:' || id)) VIRTUAL /* E-mail that this is a copy of (`messages.header_message_id`): `header_message_id`, or `id:` and the copy’s id where that is NULL or empty. NULL: it does not occur. */;
--> statement-breakpoint
ALTER TABLE `message_copies` ADD `_changed_at` text /* When a value of it was last replaced by another or taken away. What completes the row is no change: a value where there was none, a text that is read for the first time. NULL: none ever was. */;
--> statement-breakpoint
CREATE INDEX `message_copies_by_mail` ON `message_copies` (`mail_id`);
--> statement-breakpoint
ALTER TABLE `members` ADD `_changed_at` text /* When a value of it was last replaced by another or taken away. What completes the row is no change: a value where there was none, a text that is read for the first time. NULL: none ever was. */;
--> statement-breakpoint
ALTER TABLE `teams` ADD `_changed_at` text /* When a value of it was last replaced by another or taken away. What completes the row is no change: a value where there was none, a text that is read for the first time. NULL: none ever was. */;
--> statement-breakpoint
ALTER TABLE `collections` ADD `_changed_at` text /* When a value of it was last replaced by another or taken away. What completes the row is no change: a value where there was none, a text that is read for the first time. NULL: none ever was. */;
--> statement-breakpoint
ALTER TABLE `activities` ADD `_changed_at` text /* When a value of it was last replaced by another or taken away. What completes the row is no change: a value where there was none, a text that is read for the first time. NULL: none ever was. */;
--> statement-breakpoint
ALTER TABLE `messages` ADD `_changed_at` text /* When a value of it was last replaced by another or taken away. What completes the row is no change: a value where there was none, a text that is read for the first time. NULL: none ever was. */;
--> statement-breakpoint
ALTER TABLE `meetings` ADD `_changed_at` text /* When a value of it was last replaced by another or taken away. What completes the row is no change: a value where there was none, a text that is read for the first time. NULL: none ever was. */;
--> statement-breakpoint
ALTER TABLE `playbook_results` ADD `_changed_at` text /* When a value of it was last replaced by another or taken away. What completes the row is no change: a value where there was none, a text that is read for the first time. NULL: none ever was. */;
--> statement-breakpoint
ALTER TABLE `playbooks` ADD `_changed_at` text /* When a value of it was last replaced by another or taken away. What completes the row is no change: a value where there was none, a text that is read for the first time. NULL: none ever was. */;
--> statement-breakpoint
ALTER TABLE `crm_objects` ADD `_changed_at` text /* When a value of it was last replaced by another or taken away. What completes the row is no change: a value where there was none, a text that is read for the first time. NULL: none ever was. */;
--> statement-breakpoint
ALTER TABLE `crm_records` ADD `_changed_at` text /* When a value of it was last replaced by another or taken away. What completes the row is no change: a value where there was none, a text that is read for the first time. NULL: none ever was. */;
--> statement-breakpoint
ALTER TABLE `access_logs` ADD `_changed_at` text /* When a value of it was last replaced by another or taken away. What completes the row is no change: a value where there was none, a text that is read for the first time. NULL: none ever was. */;
--> statement-breakpoint
ALTER TABLE `bot_definition` ADD `_changed_at` text /* When a value of it was last replaced by another or taken away. What completes the row is no change: a value where there was none, a text that is read for the first time. NULL: none ever was. */;
--> statement-breakpoint
ALTER TABLE `integrations` ADD `_changed_at` text /* When a value of it was last replaced by another or taken away. What completes the row is no change: a value where there was none, a text that is read for the first time. NULL: none ever was. */;
--> statement-breakpoint
INSERT INTO `message_participants` (`header_message_id`, `role`, `handle`, `display_name`, `contact_id`)
SELECT c.`mail_id`, p.`role`, p.`handle`, p.`display_name`, p.`contact_id`
FROM `message_copies` c JOIN `message_copy_participants` p ON p.`message_id` = c.`id`
WHERE c.`_deleted_at` IS NULL AND p.`role` IS NOT NULL AND p.`handle` IS NOT NULL
ORDER BY c.`mail_id`, c.`received_at` IS NULL, c.`received_at`, c.`id`, p.`position`
ON CONFLICT DO UPDATE SET `display_name` = coalesce(`display_name`, excluded.`display_name`),
  `contact_id` = coalesce(`contact_id`, excluded.`contact_id`);
--> statement-breakpoint
UPDATE `meetings` SET `_changed_at` = `_synced_at`
WHERE `access` = 'withheld' AND `_deleted_at` IS NULL AND `_synced_at` > `_first_seen_at`;
