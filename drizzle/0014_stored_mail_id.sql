DROP INDEX `message_copies_by_mail`;
--> statement-breakpoint
ALTER TABLE `message_copies` DROP COLUMN `mail_id`;
--> statement-breakpoint
ALTER TABLE `message_copies` ADD `mail_id` text /* E-mail that this is a copy of (`messages.header_message_id`): `header_message_id` without blanks at its ends, or `id:` followed by the copy’s id where that leaves nothing. NULL: it does not occur. */;
--> statement-breakpoint
UPDATE `message_copies` SET `mail_id` = coalesce(nullif(`header_message_id`, ''), 'id:' || `id`);
--> statement-breakpoint
CREATE INDEX `message_copies_by_mail` ON `message_copies` (`mail_id`);
