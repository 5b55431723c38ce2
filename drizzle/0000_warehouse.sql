CREATE TABLE `members` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text,
	`email` text,
	`role` text,
	`_first_seen_at` text NOT NULL,
	`_synced_at` text NOT NULL,
	`_deleted_at` text,
	`_extra` text
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `members_deleted` ON `members` (`_deleted_at`) WHERE _deleted_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `teams` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text,
	`_first_seen_at` text NOT NULL,
	`_synced_at` text NOT NULL,
	`_deleted_at` text,
	`_extra` text
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `teams_deleted` ON `teams` (`_deleted_at`) WHERE _deleted_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `team_members` (
	`team_id` text NOT NULL,
	`member_id` text NOT NULL,
	`_extra` text,
	PRIMARY KEY(`team_id`, `member_id`),
	FOREIGN KEY (`team_id`) REFERENCES `teams`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `team_members_by_member` ON `team_members` (`member_id`);
--> statement-breakpoint
CREATE TABLE `collections` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text,
	`description` text,
	`visibility` text,
	`created_at` text,
	`updated_at` text,
	`_first_seen_at` text NOT NULL,
	`_synced_at` text NOT NULL,
	`_deleted_at` text,
	`_extra` text
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `collections_deleted` ON `collections` (`_deleted_at`) WHERE _deleted_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `collection_meetings` (
	`collection_id` text NOT NULL,
	`meeting_id` text NOT NULL,
	PRIMARY KEY(`collection_id`, `meeting_id`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `collection_meetings_by_meeting` ON `collection_meetings` (`meeting_id`);
--> statement-breakpoint
CREATE TABLE `activities` (
	`_id` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`type` text,
	`source_type` text,
	`source_id` text,
	`occurred_at` text,
	`created_via` text,
	`actor_kind` text,
	`actor_id` text,
	`_first_seen_at` text NOT NULL,
	`_synced_at` text NOT NULL,
	`_deleted_at` text,
	`_extra` text
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `activities_key` ON `activities` (`id`);
--> statement-breakpoint
CREATE INDEX `activities_by_time` ON `activities` ("occurred_at" DESC);
--> statement-breakpoint
CREATE INDEX `activities_by_source` ON `activities` (`source_id`);
--> statement-breakpoint
CREATE INDEX `activities_deleted` ON `activities` (`_deleted_at`) WHERE _deleted_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `activity_links` (
	`activity_id` text NOT NULL,
	`context_type` text NOT NULL,
	`context_id` text NOT NULL,
	`origin` text NOT NULL,
	`_extra` text,
	PRIMARY KEY(`activity_id`, `context_type`, `context_id`, `origin`),
	FOREIGN KEY (`activity_id`) REFERENCES `activities`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `activity_links_by_context` ON `activity_links` (`context_type`,`context_id`);
--> statement-breakpoint
CREATE TABLE `message_copies` (
	`_id` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`header_message_id` text,
	`thread_id` text,
	`subject` text,
	`received_at` text,
	`is_internal` integer,
	`is_group_email` integer,
	`text_state` text DEFAULT 'pending' NOT NULL,
	`_text_due` integer DEFAULT 1,
	`_first_seen_at` text NOT NULL,
	`_synced_at` text NOT NULL,
	`_deleted_at` text,
	`_extra` text
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `message_copies_key` ON `message_copies` (`id`);
--> statement-breakpoint
CREATE INDEX `message_copies_by_header` ON `message_copies` (`header_message_id`);
--> statement-breakpoint
CREATE INDEX `message_copies_by_time` ON `message_copies` ("received_at" DESC,`_deleted_at`);
--> statement-breakpoint
CREATE INDEX `message_copies_text_due` ON `message_copies` ("received_at" DESC) WHERE _text_due = 1;
--> statement-breakpoint
CREATE INDEX `message_copies_deleted` ON `message_copies` (`_deleted_at`) WHERE _deleted_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `message_copy_participants` (
	`message_id` text NOT NULL,
	`position` integer NOT NULL,
	`role` text,
	`handle` text,
	`display_name` text,
	`contact_id` text,
	`_extra` text,
	PRIMARY KEY(`message_id`, `position`),
	FOREIGN KEY (`message_id`) REFERENCES `message_copies`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `messages` (
	`_id` integer PRIMARY KEY NOT NULL,
	`header_message_id` text NOT NULL,
	`id` text,
	`copy_count` integer,
	`thread_id` text,
	`subject` text,
	`received_at` text,
	`is_internal` integer,
	`is_group_email` integer,
	`text` text,
	`text_state` text,
	`_text_from` integer,
	`_first_seen_at` text NOT NULL,
	`_synced_at` text NOT NULL,
	`_deleted_at` text,
	`_extra` text
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `messages_key` ON `messages` (`header_message_id`);
--> statement-breakpoint
CREATE INDEX `messages_by_time` ON `messages` ("received_at" DESC,`text_state`,`_deleted_at`);
--> statement-breakpoint
CREATE INDEX `messages_by_thread` ON `messages` (`thread_id`,`received_at`);
--> statement-breakpoint
CREATE INDEX `messages_deleted` ON `messages` (`_deleted_at`) WHERE _deleted_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `meetings` (
	`_id` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`url` text,
	`workspace_id` text,
	`title` text,
	`platform` text,
	`start_time` text,
	`end_time` text,
	`recording_duration` integer,
	`base_type` text,
	`recording_source` text,
	`overview_status` text,
	`crm_type` text,
	`meeting_type_name` text,
	`transcript_languages` text,
	`owner_name` text,
	`owner_email` text,
	`access` text,
	`transcript_state` text DEFAULT 'pending' NOT NULL,
	`_first_seen_at` text NOT NULL,
	`_synced_at` text NOT NULL,
	`_deleted_at` text,
	`_extra` text
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `meetings_key` ON `meetings` (`id`);
--> statement-breakpoint
CREATE INDEX `meetings_by_time` ON `meetings` (`start_time`);
--> statement-breakpoint
CREATE INDEX `meetings_transcript_pending` ON `meetings` (`start_time`) WHERE transcript_state = 'pending';
--> statement-breakpoint
CREATE INDEX `meetings_deleted` ON `meetings` (`_deleted_at`) WHERE _deleted_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `meeting_owner_teams` (
	`meeting_id` text NOT NULL,
	`team_id` text NOT NULL,
	`name` text,
	`_extra` text,
	PRIMARY KEY(`meeting_id`, `team_id`),
	FOREIGN KEY (`meeting_id`) REFERENCES `meetings`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `meeting_attendees` (
	`meeting_id` text NOT NULL,
	`position` integer NOT NULL,
	`name` text,
	`email` text,
	`is_workspace_member` integer,
	`is_internal` integer,
	`contact_id` text,
	`_extra` text,
	PRIMARY KEY(`meeting_id`, `position`),
	FOREIGN KEY (`meeting_id`) REFERENCES `meetings`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `meeting_attendees_by_email` ON `meeting_attendees` (`email`);
--> statement-breakpoint
CREATE TABLE `meeting_attendee_teams` (
	`meeting_id` text NOT NULL,
	`attendee_position` integer NOT NULL,
	`team_id` text NOT NULL,
	`name` text,
	`_extra` text,
	PRIMARY KEY(`meeting_id`, `attendee_position`, `team_id`),
	FOREIGN KEY (`meeting_id`,`attendee_position`) REFERENCES `meeting_attendees`(`meeting_id`,`position`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `meeting_crm_records` (
	`meeting_id` text NOT NULL,
	`position` integer NOT NULL,
	`record_id` text,
	`record_name` text,
	`record_url` text,
	`record_object_type` text,
	`_extra` text,
	PRIMARY KEY(`meeting_id`, `position`),
	FOREIGN KEY (`meeting_id`) REFERENCES `meetings`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `meeting_related_objects` (
	`meeting_id` text NOT NULL,
	`position` integer NOT NULL,
	`object_type` text,
	`object_id` text,
	`display_name` text,
	`is_internal` integer,
	`company_ids` text,
	`crm_record_id` text,
	`crm_record_name` text,
	`crm_record_url` text,
	`crm_record_object_type` text,
	`_extra` text,
	PRIMARY KEY(`meeting_id`, `position`),
	FOREIGN KEY (`meeting_id`) REFERENCES `meetings`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `meeting_related_objects_by_object` ON `meeting_related_objects` (`object_id`);
--> statement-breakpoint
CREATE TABLE `meeting_speakers` (
	`meeting_id` text NOT NULL,
	`position` integer NOT NULL,
	`speaker_name` text,
	`speaker_ratio` real,
	`_extra` text,
	PRIMARY KEY(`meeting_id`, `position`),
	FOREIGN KEY (`meeting_id`) REFERENCES `meetings`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `meeting_chapters` (
	`meeting_id` text NOT NULL,
	`position` integer NOT NULL,
	`title` text,
	`_extra` text,
	PRIMARY KEY(`meeting_id`, `position`),
	FOREIGN KEY (`meeting_id`) REFERENCES `meetings`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `meeting_chapter_items` (
	`meeting_id` text NOT NULL,
	`chapter_position` integer NOT NULL,
	`position` integer NOT NULL,
	`item` text,
	`time` integer,
	`_extra` text,
	PRIMARY KEY(`meeting_id`, `chapter_position`, `position`),
	FOREIGN KEY (`meeting_id`,`chapter_position`) REFERENCES `meeting_chapters`(`meeting_id`,`position`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `meeting_action_items` (
	`meeting_id` text NOT NULL,
	`id` text NOT NULL,
	`position` integer NOT NULL,
	`text` text,
	`detail` text,
	`due_date` text,
	`time` integer,
	`completed` integer,
	`_extra` text,
	PRIMARY KEY(`meeting_id`, `id`),
	FOREIGN KEY (`meeting_id`) REFERENCES `meetings`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `transcript_entries` (
	`_id` integer PRIMARY KEY NOT NULL,
	`meeting_id` text NOT NULL,
	`position` integer NOT NULL,
	`speaker_id` text,
	`speaker_name` text,
	`contact_id` text,
	`text` text,
	`elapsed_seconds` real,
	`words` text,
	`_extra` text
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `transcript_entries_key` ON `transcript_entries` (`meeting_id`,`position`);
--> statement-breakpoint
CREATE TABLE `playbook_results` (
	`id` text PRIMARY KEY NOT NULL,
	`meeting_id` text NOT NULL,
	`playbook_id` text,
	`playbook_name` text,
	`created_at` text,
	`_first_seen_at` text NOT NULL,
	`_synced_at` text NOT NULL,
	`_deleted_at` text,
	`_extra` text
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `playbook_results_by_meeting` ON `playbook_results` (`meeting_id`);
--> statement-breakpoint
CREATE INDEX `playbook_results_deleted` ON `playbook_results` (`_deleted_at`) WHERE _deleted_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `talk_point_results` (
	`playbook_result_id` text NOT NULL,
	`id` text NOT NULL,
	`talk_point_id` text,
	`question` text,
	`answer` text,
	`created_at` text,
	`_extra` text,
	PRIMARY KEY(`playbook_result_id`, `id`),
	FOREIGN KEY (`playbook_result_id`) REFERENCES `playbook_results`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `playbooks` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text,
	`active` integer,
	`updated_at` text,
	`execution_setting` text,
	`_first_seen_at` text NOT NULL,
	`_synced_at` text NOT NULL,
	`_deleted_at` text,
	`_extra` text
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `playbooks_deleted` ON `playbooks` (`_deleted_at`) WHERE _deleted_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `playbook_talk_points` (
	`playbook_id` text NOT NULL,
	`id` text NOT NULL,
	`question` text,
	`description` text,
	`order` integer,
	`target` text,
	`data_type` text,
	`format_style` text,
	`character_limit` integer,
	`_extra` text,
	PRIMARY KEY(`playbook_id`, `id`),
	FOREIGN KEY (`playbook_id`) REFERENCES `playbooks`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `crm_objects` (
	`name` text PRIMARY KEY NOT NULL,
	`name_plural` text,
	`label` text,
	`label_plural` text,
	`is_custom` integer,
	`is_active` integer,
	`_first_seen_at` text NOT NULL,
	`_synced_at` text NOT NULL,
	`_deleted_at` text,
	`_extra` text
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `crm_objects_deleted` ON `crm_objects` (`_deleted_at`) WHERE _deleted_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `crm_fields` (
	`object` text NOT NULL,
	`name` text NOT NULL,
	`position` integer NOT NULL,
	`label` text,
	`type` text,
	`is_nullable` integer,
	`is_unique` integer,
	`is_custom` integer,
	`is_active` integer,
	`options` text,
	`relation_type` text,
	`relation_target_object` text,
	`relation_target_resource` text,
	`_extra` text,
	PRIMARY KEY(`object`, `name`),
	FOREIGN KEY (`object`) REFERENCES `crm_objects`(`name`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `crm_records` (
	`_id` integer PRIMARY KEY NOT NULL,
	`object` text NOT NULL,
	`id` text NOT NULL,
	`visibility` text,
	`fields` text,
	`created_at` text,
	`updated_at` text,
	`created_by_kind` text,
	`created_by_name` text,
	`updated_by_kind` text,
	`updated_by_name` text,
	`_first_seen_at` text NOT NULL,
	`_synced_at` text NOT NULL,
	`_deleted_at` text,
	`_extra` text
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `crm_records_key` ON `crm_records` (`object`,`id`);
--> statement-breakpoint
CREATE INDEX `crm_records_by_id` ON `crm_records` (`id`);
--> statement-breakpoint
CREATE INDEX `crm_records_by_update` ON `crm_records` (`updated_at`);
--> statement-breakpoint
CREATE INDEX `crm_records_deleted` ON `crm_records` (`_deleted_at`) WHERE _deleted_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `crm_record_changes` (
	`object` text NOT NULL,
	`record_id` text NOT NULL,
	`field` text NOT NULL,
	`observed_at` text NOT NULL,
	`old_value` text,
	`new_value` text,
	PRIMARY KEY(`object`, `record_id`, `field`, `observed_at`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `crm_record_links` (
	`object` text NOT NULL,
	`record_id` text NOT NULL,
	`related_object` text NOT NULL,
	`related_id` text NOT NULL,
	PRIMARY KEY(`object`, `record_id`, `related_object`, `related_id`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `crm_record_links_by_related` ON `crm_record_links` (`related_object`,`related_id`);
--> statement-breakpoint
CREATE TABLE `access_logs` (
	`id` text PRIMARY KEY NOT NULL,
	`occurred_at` text,
	`operation` text,
	`method` text,
	`route` text,
	`path` text,
	`status_code` integer,
	`duration_ms` integer,
	`response_size_bytes` integer,
	`api_key_suffix` text,
	`completion` text,
	`_first_seen_at` text NOT NULL,
	`_synced_at` text NOT NULL,
	`_deleted_at` text,
	`_extra` text
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `access_logs_by_time` ON `access_logs` ("occurred_at" DESC);
--> statement-breakpoint
CREATE INDEX `access_logs_deleted` ON `access_logs` (`_deleted_at`) WHERE _deleted_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `bot_definition` (
	`id` integer PRIMARY KEY NOT NULL,
	`name` text,
	`message_on_join_active` integer,
	`message_on_join_frequency` text,
	`message_on_join_message` text,
	`_first_seen_at` text NOT NULL,
	`_synced_at` text NOT NULL,
	`_deleted_at` text,
	`_extra` text
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `bot_definition_deleted` ON `bot_definition` (`_deleted_at`) WHERE _deleted_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `bot_transcription_hints` (
	`position` integer PRIMARY KEY NOT NULL,
	`hint` text,
	`intensity` real,
	`language` text,
	`pronunciations` text,
	`replacements` text,
	`_extra` text
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `integrations` (
	`id` integer PRIMARY KEY NOT NULL,
	`document` text,
	`_first_seen_at` text NOT NULL,
	`_synced_at` text NOT NULL,
	`_deleted_at` text,
	`_extra` text
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `integrations_deleted` ON `integrations` (`_deleted_at`) WHERE _deleted_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `sync_meta` (
	`key` text PRIMARY KEY NOT NULL,
	`value` text
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `sync_resources` (
	`resource` text PRIMARY KEY NOT NULL,
	`round` integer DEFAULT 0 NOT NULL,
	`round_open` integer DEFAULT 0 NOT NULL,
	`round_started_at` text,
	`first_complete_at` text,
	`fresh_as_of` text,
	`last_success_at` text,
	`next_run_at` text,
	`complete_as_of` text,
	`unavailable_since` text,
	`failing_since` text,
	`reason` text,
	`held_since` text
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `sync_segments` (
	`id` integer PRIMARY KEY NOT NULL,
	`feed` text NOT NULL,
	`scope` text DEFAULT '' NOT NULL,
	`from_at` text,
	`to_at` text,
	`query` text,
	`cursor` text,
	`pass_started_at` text,
	`pass_round` integer,
	`pages` integer DEFAULT 0 NOT NULL,
	`rows` integer DEFAULT 0 NOT NULL,
	`edge_at` text,
	`edge_keys` text,
	`total_size` integer,
	`restarts` integer DEFAULT 0 NOT NULL,
	`listed_at` text,
	`listed_round` integer DEFAULT 0 NOT NULL,
	`closed` integer DEFAULT 0 NOT NULL
) STRICT;
--> statement-breakpoint
CREATE INDEX `sync_segments_by_feed` ON `sync_segments` (`feed`,`scope`,`to_at`);
--> statement-breakpoint
CREATE TABLE `sync_seen` (
	`feed` text NOT NULL,
	`scope` text NOT NULL,
	`key` text NOT NULL,
	PRIMARY KEY(`feed`, `scope`, `key`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `sync_tasks` (
	`feed` text NOT NULL,
	`scope` text DEFAULT '' NOT NULL,
	`key` text NOT NULL,
	`sort_at` text,
	`due_at` text NOT NULL,
	`round` integer DEFAULT 0 NOT NULL,
	`attempts` integer DEFAULT 0 NOT NULL,
	`deadline` text,
	`waiting` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`feed`, `scope`, `key`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `sync_tasks_by_round` ON `sync_tasks` (`feed`,`round`);
--> statement-breakpoint
CREATE TABLE `sync_absences` (
	`table_name` text NOT NULL,
	`scope` text DEFAULT '' NOT NULL,
	`key` text NOT NULL,
	`missing_since` text NOT NULL,
	`confirmed` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`table_name`, `scope`, `key`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `sync_runs` (
	`id` integer PRIMARY KEY NOT NULL,
	`resource` text NOT NULL,
	`lane` text NOT NULL,
	`started_at` text NOT NULL,
	`ended_at` text,
	`outcome` text,
	`requests` integer DEFAULT 0 NOT NULL,
	`throttled` integer DEFAULT 0 NOT NULL,
	`rows_read` integer DEFAULT 0 NOT NULL,
	`rows_changed` integer DEFAULT 0 NOT NULL,
	`rows_deleted` integer DEFAULT 0 NOT NULL,
	`error` text
) STRICT;
--> statement-breakpoint
CREATE INDEX `sync_runs_by_resource` ON `sync_runs` (`resource`,`started_at`);
--> statement-breakpoint
CREATE TABLE `sync_rejects` (
	`id` integer PRIMARY KEY NOT NULL,
	`resource` text NOT NULL,
	`item` text NOT NULL,
	`reason` text NOT NULL,
	`first_seen_at` text NOT NULL,
	`last_seen_at` text NOT NULL,
	`resolved_at` text,
	`_feed` text NOT NULL,
	`_scope` text DEFAULT '' NOT NULL,
	`_digest` text NOT NULL
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `sync_rejects_digest` ON `sync_rejects` (`resource`,`_digest`);
