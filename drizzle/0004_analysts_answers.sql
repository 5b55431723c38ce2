CREATE TABLE `message_participants` ( /* Senders and recipients of each live e-mail: the union of its live copies by role and address. Those of a deleted e-mail are only in `message_copy_participants`. */
	`header_message_id` text NOT NULL /* E-mail (`messages.header_message_id`). */,
	`role` text NOT NULL /* `FROM`, `TO`, `CC` or `BCC`. */,
	`handle` text NOT NULL /* E-mail address. */,
	`display_name` text /* Name from the first copy that has one. NULL: no copy has a name. */,
	`contact_id` text /* CRM contact (`crm_records.id`) from the first copy that has one. NULL: no copy has a contact. */,
	PRIMARY KEY(`header_message_id`, `role`, `handle`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
DROP INDEX `message_copies_by_header`;
--> statement-breakpoint
ALTER TABLE `message_copies` ADD `mail_id` text GENERATED ALWAYS AS (coalesce(nullif(header_message_id, ''), 'id:' || id)) VIRTUAL /* E-mail that this is a copy of (`messages.header_message_id`): `header_message_id` without blanks at its ends, or `id:` followed by the copy’s id where that leaves nothing. NULL: it does not occur. */;
--> statement-breakpoint
ALTER TABLE `message_copies` ADD `_changed_at` text /* When a value was last replaced or removed. A first value, such as a text that is read for the first time, completes the row and does not count. NULL: no value was ever replaced or removed. */;
--> statement-breakpoint
CREATE INDEX `message_copies_by_mail` ON `message_copies` (`mail_id`);
--> statement-breakpoint
ALTER TABLE `members` ADD `_changed_at` text /* When a value was last replaced or removed. A first value, such as a text that is read for the first time, completes the row and does not count. NULL: no value was ever replaced or removed. */;
--> statement-breakpoint
ALTER TABLE `teams` ADD `_changed_at` text /* When a value was last replaced or removed. A first value, such as a text that is read for the first time, completes the row and does not count. NULL: no value was ever replaced or removed. */;
--> statement-breakpoint
ALTER TABLE `collections` ADD `_changed_at` text /* When a value was last replaced or removed. A first value, such as a text that is read for the first time, completes the row and does not count. NULL: no value was ever replaced or removed. */;
--> statement-breakpoint
ALTER TABLE `activities` ADD `_changed_at` text /* When a value was last replaced or removed. A first value, such as a text that is read for the first time, completes the row and does not count. NULL: no value was ever replaced or removed. */;
--> statement-breakpoint
ALTER TABLE `messages` ADD `_changed_at` text /* When a value was last replaced or removed. A first value, such as a text that is read for the first time, completes the row and does not count. NULL: no value was ever replaced or removed. */;
--> statement-breakpoint
ALTER TABLE `meetings` ADD `_changed_at` text /* When a value was last replaced or removed. A first value, such as a text that is read for the first time, completes the row and does not count. NULL: no value was ever replaced or removed. */;
--> statement-breakpoint
ALTER TABLE `playbook_results` ADD `_changed_at` text /* When a value was last replaced or removed. A first value, such as a text that is read for the first time, completes the row and does not count. NULL: no value was ever replaced or removed. */;
--> statement-breakpoint
ALTER TABLE `playbooks` ADD `_changed_at` text /* When a value was last replaced or removed. A first value, such as a text that is read for the first time, completes the row and does not count. NULL: no value was ever replaced or removed. */;
--> statement-breakpoint
ALTER TABLE `crm_objects` ADD `_changed_at` text /* When a value was last replaced or removed. A first value, such as a text that is read for the first time, completes the row and does not count. NULL: no value was ever replaced or removed. */;
--> statement-breakpoint
ALTER TABLE `crm_records` ADD `_changed_at` text /* When a value was last replaced or removed. A first value, such as a text that is read for the first time, completes the row and does not count. NULL: no value was ever replaced or removed. */;
--> statement-breakpoint
ALTER TABLE `access_logs` ADD `_changed_at` text /* When a value was last replaced or removed. A first value, such as a text that is read for the first time, completes the row and does not count. NULL: no value was ever replaced or removed. */;
--> statement-breakpoint
ALTER TABLE `bot_definition` ADD `_changed_at` text /* When a value was last replaced or removed. A first value, such as a text that is read for the first time, completes the row and does not count. NULL: no value was ever replaced or removed. */;
--> statement-breakpoint
ALTER TABLE `integrations` ADD `_changed_at` text /* When a value was last replaced or removed. A first value, such as a text that is read for the first time, completes the row and does not count. NULL: no value was ever replaced or removed. */;
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
