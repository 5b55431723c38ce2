CREATE TABLE `members` ( /* Members of the workspace. The API lists only active members. */
	`id` text PRIMARY KEY NOT NULL /* Member id; `activities.actor_id` and `team_members.member_id` point here. */,
	`name` text /* Display name. */,
	`email` text /* E-mail address. */,
	`role` text /* Role in the workspace; the API does not state its values. */,
	`_first_seen_at` text NOT NULL /* When the row was first stored. */,
	`_synced_at` text NOT NULL /* When the stored content last changed, including a text that was read later. A row that did not change is not rewritten. */,
	`_deleted_at` text /* When the deletion was confirmed: the API no longer publishes the row. NULL: the row is live. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were purged. */
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `members_deleted` ON `members` (`_deleted_at`) WHERE _deleted_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `teams` ( /* Teams of the workspace. */
	`id` text PRIMARY KEY NOT NULL /* Team id. */,
	`name` text /* Team name. */,
	`_first_seen_at` text NOT NULL /* When the row was first stored. */,
	`_synced_at` text NOT NULL /* When the stored content last changed, including a text that was read later. A row that did not change is not rewritten. */,
	`_deleted_at` text /* When the deletion was confirmed: the API no longer publishes the row. NULL: the row is live. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were purged. */
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `teams_deleted` ON `teams` (`_deleted_at`) WHERE _deleted_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `team_members` ( /* The members of each team. */
	`team_id` text NOT NULL /* Team. Joins `teams.id`. */,
	`member_id` text NOT NULL /* Member. May be a former member, who is on no list any more. Joins `members.id`. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were purged. */,
	PRIMARY KEY(`team_id`, `member_id`),
	FOREIGN KEY (`team_id`) REFERENCES `teams`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `team_members_by_member` ON `team_members` (`member_id`);
--> statement-breakpoint
CREATE TABLE `collections` ( /* Published, active collections of meetings. */
	`id` text PRIMARY KEY NOT NULL /* Collection id. */,
	`name` text /* Name of the collection. */,
	`description` text /* Description of the collection. */,
	`visibility` text /* Visibility. The API does not state its values. */,
	`created_at` text /* When it was created. */,
	`updated_at` text /* When it was last changed. */,
	`_first_seen_at` text NOT NULL /* When the row was first stored. */,
	`_synced_at` text NOT NULL /* When the stored content last changed, including a text that was read later. A row that did not change is not rewritten. */,
	`_deleted_at` text /* When the deletion was confirmed: the API no longer publishes the row. NULL: the row is live. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were purged. */
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `collections_deleted` ON `collections` (`_deleted_at`) WHERE _deleted_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `collection_meetings` ( /* The meetings of each collection, from the meeting list filtered by `collection_id`. */
	`collection_id` text NOT NULL /* Collection. Joins `collections.id`. */,
	`meeting_id` text NOT NULL /* Meeting. Joins `meetings.id`. */,
	PRIMARY KEY(`collection_id`, `meeting_id`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `collection_meetings_by_meeting` ON `collection_meetings` (`meeting_id`);
--> statement-breakpoint
CREATE TABLE `activities` ( /* The timeline of the workspace: meetings, messages and changes to CRM records. */
	`_id` integer PRIMARY KEY NOT NULL /* Internal: number of the row, used by other tables of the file. It changes when the file is rebuilt. */,
	`id` text NOT NULL /* Activity id. */,
	`type` text /* Kind of activity; the API does not state its values. */,
	`source_type` text /* `MEETING`, `MESSAGE` or `OBJECT_CHANGE_EVENT`. */,
	`source_id` text /* Id of the originating record: `meetings.id` for MEETING, `message_copies.id` for MESSAGE. For OBJECT_CHANGE_EVENT the API does not state what it identifies. */,
	`occurred_at` text /* When it happened. */,
	`created_via` text /* How it was created. The API does not state its values. NULL: the API could not obtain it. */,
	`actor_kind` text /* `member` or `system`. NULL: the API gives no actor. */,
	`actor_id` text /* `members.id` when the actor is a member. NULL: the actor is the system, or the API could not resolve the member. */,
	`_first_seen_at` text NOT NULL /* When the row was first stored. */,
	`_synced_at` text NOT NULL /* When the stored content last changed, including a text that was read later. A row that did not change is not rewritten. */,
	`_deleted_at` text /* When the deletion was confirmed: the API no longer publishes the row. NULL: the row is live. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were purged. */
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
CREATE TABLE `activity_links` ( /* The public company, contact and deal records that an activity belongs to. */
	`activity_id` text NOT NULL /* Activity. Joins `activities.id`. */,
	`context_type` text NOT NULL /* `company`, `contact` or `deal`. */,
	`context_id` text NOT NULL /* Id of the CRM record (`crm_records.id`). */,
	`origin` text NOT NULL /* `DIRECT`: the activity itself points at the record; `DERIVED`: inferred from another linked record. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were purged. */,
	PRIMARY KEY(`activity_id`, `context_type`, `context_id`, `origin`),
	FOREIGN KEY (`activity_id`) REFERENCES `activities`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `activity_links_by_context` ON `activity_links` (`context_type`,`context_id`);
--> statement-breakpoint
CREATE TABLE `message_copies` ( /* Every copy of every e-mail: one for each mailbox that it was imported from. The text is in `messages`, that of a copy with another sender in `text`. */
	`_id` integer PRIMARY KEY NOT NULL /* Internal: number of the row, used by other tables of the file. It changes when the file is rebuilt. */,
	`id` text NOT NULL /* The API's message id; `activities.source_id` of a MESSAGE activity points here. */,
	`header_message_id` text /* RFC 5322 Message-ID as sent by the API; may be NULL or blank. Join `messages` by `mail_id`. */,
	`thread_id` text /* Thread: e-mails of one conversation have the same id. NULL: the API could not obtain it. */,
	`subject` text /* Subject line. NULL: the share settings hide it, or it is empty. The API does not state which, or the value was purged. */,
	`received_at` text /* When the e-mail was sent or received. */,
	`is_internal` integer /* 1 when every FROM, TO and CC is a member. */,
	`is_group_email` integer /* 1 for mailing lists and group addresses. */,
	`text_state` text DEFAULT 'pending' NOT NULL /* State of the text of this copy: `pending` (not read; final when another copy gave the text), `present`, `empty` (read, and null) or `gone` (404). For the e-mail use `messages.text_state`. */,
	`_text_due` integer DEFAULT 1 /* Internal: 1 while the text of this copy is to be read next. NULL: the text of this copy is not to be read next. */,
	`_first_seen_at` text NOT NULL /* When the row was first stored. */,
	`_synced_at` text NOT NULL /* When the stored content last changed, including a text that was read later. A row that did not change is not rewritten. */,
	`_deleted_at` text /* When the deletion was confirmed: the API no longer publishes the row. NULL: the row is live. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were purged. */
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
CREATE TABLE `message_copy_participants` ( /* Senders and recipients of each copy, in the order of the API: FROM, TO, CC, BCC, then by address. */
	`message_id` text NOT NULL /* Copy (`message_copies.id`). */,
	`position` integer NOT NULL /* 0-based index in the API's array. */,
	`role` text /* `FROM`, `TO`, `CC` or `BCC`. */,
	`handle` text /* E-mail address. */,
	`display_name` text /* Name as written in the e-mail. */,
	`contact_id` text /* CRM contact (`crm_records.id`). NULL: the API gave no contact. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were purged. */,
	PRIMARY KEY(`message_id`, `position`),
	FOREIGN KEY (`message_id`) REFERENCES `message_copies`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `messages` ( /* One row per e-mail: its live copies merged. */
	`_id` integer PRIMARY KEY NOT NULL /* Internal: number of the row, used by other tables of the file. It changes when the file is rebuilt. */,
	`header_message_id` text NOT NULL /* RFC 5322 Message-ID, or `id:` followed by the message id where it has none. */,
	`id` text /* Id of the canonical copy: earliest `received_at`, then smallest id. Joins `message_copies.id`. NULL: it does not occur. */,
	`copy_count` integer /* Number of live copies. Unit: copies. NULL: it does not occur. */,
	`thread_id` text /* Thread: e-mails of one conversation have the same id. NULL: no copy has a value. */,
	`subject` text /* Subject of the first copy that has one. NULL: the share settings hide it in every copy, or it is empty. The API does not state which, or the value was purged. */,
	`received_at` text /* When the e-mail was sent or received. NULL: no copy has a value. */,
	`is_internal` integer /* 1 when every FROM, TO and CC is a member. NULL: no copy has a value. */,
	`is_group_email` integer /* 1 for mailing lists and group addresses. NULL: no copy has a value. */,
	`text` text /* Full plain text of the first copy that has one, of those with the sender of the e-mail. NULL: `text_state` says why, or the value was purged. */,
	`text_state` text /* `present` when the text is known, otherwise the state of the canonical copy: `pending`, `empty` (hidden or really empty) or `gone`. NULL: it does not occur. */,
	`_text_from` integer /* Internal: rowid of the copy that the text was read from. NULL: no text is known. */,
	`_first_seen_at` text NOT NULL /* When the row was first stored. */,
	`_synced_at` text NOT NULL /* When the stored content last changed, including a text that was read later. A row that did not change is not rewritten. */,
	`_deleted_at` text /* When the deletion was confirmed: the API no longer publishes the row. NULL: the row is live. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were purged. */
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
CREATE TABLE `meetings` ( /* Recorded meetings. A meeting that the API withholds (`access`) has only the values that were read before, possibly only its id. */
	`_id` integer PRIMARY KEY NOT NULL /* Internal: number of the row, used by other tables of the file. It changes when the file is rebuilt. */,
	`id` text NOT NULL /* Meeting id. */,
	`url` text /* Link to the meeting in the product. */,
	`workspace_id` text /* Id of the workspace; the same in every row. */,
	`title` text /* Title. */,
	`platform` text /* Conferencing platform. */,
	`start_time` text /* When the meeting started. */,
	`end_time` text /* When the meeting ended. */,
	`recording_duration` integer /* Length of the recording. Unit: not stated. */,
	`base_type` text /* Type of meeting. The API does not state its values. */,
	`recording_source` text /* Source of the recording. The API does not state its values. */,
	`overview_status` text /* State of summaries and action items: `COMPLETED` when they are ready. The API does not state its other values. */,
	`crm_type` text /* Type of the linked CRM. The API does not state its values. */,
	`meeting_type_name` text /* Type of meeting as the workspace names it. */,
	`transcript_languages` text /* Language codes of the transcript. */,
	`owner_name` text /* Name of the owner. */,
	`owner_email` text /* E-mail address of the owner. */,
	`access` text /* `open`, or `withheld` when the API answers 403. NULL: its detail has not been read yet. */,
	`transcript_state` text DEFAULT 'pending' NOT NULL /* `pending` (no answer yet), `present`, `empty` (the last answer was an empty list), `withheld` (403) or `gone` (404). */,
	`_first_seen_at` text NOT NULL /* When the row was first stored. */,
	`_synced_at` text NOT NULL /* When the stored content last changed, including a text that was read later. A row that did not change is not rewritten. */,
	`_deleted_at` text /* When the deletion was confirmed: the API no longer publishes the row. NULL: the row is live. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were purged. */
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
CREATE TABLE `meeting_owner_teams` ( /* Teams of the meeting’s owner. */
	`meeting_id` text NOT NULL /* Meeting. Joins `meetings.id`. */,
	`team_id` text NOT NULL /* Team. Joins `teams.id`. */,
	`name` text /* Team name at that time. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were purged. */,
	PRIMARY KEY(`meeting_id`, `team_id`),
	FOREIGN KEY (`meeting_id`) REFERENCES `meetings`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `meeting_attendees` ( /* People who took part in the meeting. */
	`meeting_id` text NOT NULL /* Meeting. Joins `meetings.id`. */,
	`position` integer NOT NULL /* 0-based index in the API's array. */,
	`name` text /* Name of the person. */,
	`email` text /* E-mail address. */,
	`is_workspace_member` integer /* 1 for members of the workspace. */,
	`is_internal` integer /* 1 for people of the workspace's organisation. */,
	`contact_id` text /* CRM contact (`crm_records.id`). NULL: the API gave no contact. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were purged. */,
	PRIMARY KEY(`meeting_id`, `position`),
	FOREIGN KEY (`meeting_id`) REFERENCES `meetings`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `meeting_attendees_by_email` ON `meeting_attendees` (`email`);
--> statement-breakpoint
CREATE TABLE `meeting_attendee_teams` ( /* Teams of the attendees who are members. */
	`meeting_id` text NOT NULL /* Meeting. Joins `meeting_attendees.meeting_id`. */,
	`attendee_position` integer NOT NULL /* Attendee (`meeting_attendees.position`). */,
	`team_id` text NOT NULL /* Team. Joins `teams.id`. */,
	`name` text /* Team name at that time. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were purged. */,
	PRIMARY KEY(`meeting_id`, `attendee_position`, `team_id`),
	FOREIGN KEY (`meeting_id`,`attendee_position`) REFERENCES `meeting_attendees`(`meeting_id`,`position`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `meeting_crm_records` ( /* CRM records that the meeting is linked to. */
	`meeting_id` text NOT NULL /* Meeting. Joins `meetings.id`. */,
	`position` integer NOT NULL /* 0-based index in the API's array. */,
	`record_id` text /* Id in the CRM itself. The API does not state that it is a `crm_records.id`. */,
	`record_name` text /* Name of the record. */,
	`record_url` text /* Link to the record in the CRM. */,
	`record_object_type` text /* Type of the record in the CRM, such as `Opportunity`. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were purged. */,
	PRIMARY KEY(`meeting_id`, `position`),
	FOREIGN KEY (`meeting_id`) REFERENCES `meetings`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `meeting_related_objects` ( /* Companies, contacts and deals that the meeting belongs to. */
	`meeting_id` text NOT NULL /* Meeting. Joins `meetings.id`. */,
	`position` integer NOT NULL /* 0-based index in the API's array. */,
	`object_type` text /* Type of the object, such as `company`. */,
	`object_id` text /* Id of the object (`crm_records.id`). */,
	`display_name` text /* Name of the object. */,
	`is_internal` integer /* 1 for an object of the workspace's organisation. */,
	`company_ids` text /* Ids of the companies that the object belongs to. */,
	`crm_record_id` text /* Id of the record in the CRM itself, as in `meeting_crm_records`. */,
	`crm_record_name` text /* Name of that record. */,
	`crm_record_url` text /* Link to that record in the CRM. */,
	`crm_record_object_type` text /* Type of that record in the CRM, such as `Account`. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were purged. */,
	PRIMARY KEY(`meeting_id`, `position`),
	FOREIGN KEY (`meeting_id`) REFERENCES `meetings`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `meeting_related_objects_by_object` ON `meeting_related_objects` (`object_id`);
--> statement-breakpoint
CREATE TABLE `meeting_speakers` ( /* How much each person spoke. */
	`meeting_id` text NOT NULL /* Meeting. Joins `meetings.id`. */,
	`position` integer NOT NULL /* 0-based index in the API's array. */,
	`speaker_name` text /* Name of the person. */,
	`speaker_ratio` real /* Share of the talking time. Unit: not stated. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were purged. */,
	PRIMARY KEY(`meeting_id`, `position`),
	FOREIGN KEY (`meeting_id`) REFERENCES `meetings`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `meeting_chapters` ( /* Chapters of the generated summary. */
	`meeting_id` text NOT NULL /* Meeting. Joins `meetings.id`. */,
	`position` integer NOT NULL /* 0-based index in the API's array. */,
	`title` text /* Title of the chapter. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were purged. */,
	PRIMARY KEY(`meeting_id`, `position`),
	FOREIGN KEY (`meeting_id`) REFERENCES `meetings`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `meeting_chapter_items` ( /* The points of each summary chapter. */
	`meeting_id` text NOT NULL /* Meeting. Joins `meeting_chapters.meeting_id`. */,
	`chapter_position` integer NOT NULL /* Chapter (`meeting_chapters.position`). */,
	`position` integer NOT NULL /* 0-based index in the API's array. */,
	`item` text /* The point, as a sentence. */,
	`time` integer /* Position of the point in the meeting. Unit: not stated. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were purged. */,
	PRIMARY KEY(`meeting_id`, `chapter_position`, `position`),
	FOREIGN KEY (`meeting_id`,`chapter_position`) REFERENCES `meeting_chapters`(`meeting_id`,`position`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `meeting_action_items` ( /* Tasks that were agreed on in the meeting. */
	`meeting_id` text NOT NULL /* Meeting. Joins `meetings.id`. */,
	`id` text NOT NULL /* Action item id. */,
	`position` integer NOT NULL /* 0-based index in the API's array. */,
	`text` text /* The task. */,
	`detail` text /* Details of the task. */,
	`due_date` text /* Due date. */,
	`time` integer /* Position of the action item in the meeting. Unit: not stated. */,
	`completed` integer /* 1 when completed. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were purged. */,
	PRIMARY KEY(`meeting_id`, `id`),
	FOREIGN KEY (`meeting_id`) REFERENCES `meetings`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `transcript_entries` ( /* What was said, in order. */
	`_id` integer PRIMARY KEY NOT NULL /* Internal: number of the row, used by other tables of the file. It changes when the file is rebuilt. */,
	`meeting_id` text NOT NULL /* Meeting. Joins `meetings.id`. */,
	`position` integer NOT NULL /* 0-based index in the API's array. */,
	`speaker_id` text /* Id of the speaker within the meeting. */,
	`speaker_name` text /* Name of the speaker. */,
	`contact_id` text /* CRM contact (`crm_records.id`). NULL: the API gave no contact. */,
	`text` text /* What was said. */,
	`elapsed_seconds` real /* When it was said, counted from the start. Unit: seconds. */,
	`words` text /* Array of `[text, start_time, end_time]`; see the view `transcript_words`. Unit: not stated. NULL: the API gave no words, or `transcripts.words` is off. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were purged. */
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `transcript_entries_key` ON `transcript_entries` (`meeting_id`,`position`);
--> statement-breakpoint
CREATE TABLE `playbook_results` ( /* The latest result of each playbook for each meeting. */
	`id` text PRIMARY KEY NOT NULL /* Result id. */,
	`meeting_id` text NOT NULL /* Meeting. Joins `meetings.id`. */,
	`playbook_id` text /* Playbook. Joins `playbooks.id`. */,
	`playbook_name` text /* Name of the playbook at that time. */,
	`created_at` text /* When the result was created. */,
	`_first_seen_at` text NOT NULL /* When the row was first stored. */,
	`_synced_at` text NOT NULL /* When the stored content last changed, including a text that was read later. A row that did not change is not rewritten. */,
	`_deleted_at` text /* When the deletion was confirmed: the API no longer publishes the row. NULL: the row is live. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were purged. */
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `playbook_results_by_meeting` ON `playbook_results` (`meeting_id`);
--> statement-breakpoint
CREATE INDEX `playbook_results_deleted` ON `playbook_results` (`_deleted_at`) WHERE _deleted_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `talk_point_results` ( /* The answers to the questions of a playbook. */
	`playbook_result_id` text NOT NULL /* Result. Joins `playbook_results.id`. */,
	`id` text NOT NULL /* Id of the answer. */,
	`talk_point_id` text /* Question (`playbook_talk_points.id`). */,
	`question` text /* The question at that time. */,
	`answer` text /* The answer from the meeting. */,
	`created_at` text /* When the answer was created. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were purged. */,
	PRIMARY KEY(`playbook_result_id`, `id`),
	FOREIGN KEY (`playbook_result_id`) REFERENCES `playbook_results`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `playbooks` ( /* Templates of questions that are answered for meetings. */
	`id` text PRIMARY KEY NOT NULL /* Playbook id. */,
	`name` text /* Name of the playbook. */,
	`active` integer /* 1 while in use. The API lists only active playbooks, but inactive ones can still be read. */,
	`updated_at` text /* When it was last changed. */,
	`execution_setting` text /* When the playbook runs automatically, as sent by the API. NULL: it has not been read yet, or the API has none, or the value was purged. */,
	`_first_seen_at` text NOT NULL /* When the row was first stored. */,
	`_synced_at` text NOT NULL /* When the stored content last changed, including a text that was read later. A row that did not change is not rewritten. */,
	`_deleted_at` text /* When the deletion was confirmed: the API no longer publishes the row. NULL: the row is live. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were purged. */
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `playbooks_deleted` ON `playbooks` (`_deleted_at`) WHERE _deleted_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `playbook_talk_points` ( /* The questions of a playbook. */
	`playbook_id` text NOT NULL /* Playbook. Joins `playbooks.id`. */,
	`id` text NOT NULL /* Question id. */,
	`question` text /* The question. */,
	`description` text /* Explanation of the question. */,
	`order` integer /* Position of the question within the playbook. */,
	`target` text /* What the question is asked about. The API does not state its values. */,
	`data_type` text /* Type of the answer. The API does not state its values. */,
	`format_style` text /* Format of the answer. The API does not state its values. */,
	`character_limit` integer /* Maximum length of the answer. Unit: characters. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were purged. */,
	PRIMARY KEY(`playbook_id`, `id`),
	FOREIGN KEY (`playbook_id`) REFERENCES `playbooks`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `crm_objects` ( /* The CRM objects of the workspace, and their typed tables. */
	`name` text PRIMARY KEY NOT NULL /* API name, such as `deal`. */,
	`name_plural` text /* API name in the plural. */,
	`label` text /* Display name. */,
	`label_plural` text /* Display name in the plural. */,
	`is_custom` integer /* 1 for an object that the workspace added, 0 for a standard one. */,
	`is_active` integer /* 1 while in use. */,
	`_first_seen_at` text NOT NULL /* When the row was first stored. */,
	`_synced_at` text NOT NULL /* When the stored content last changed, including a text that was read later. A row that did not change is not rewritten. */,
	`_deleted_at` text /* When the deletion was confirmed: the API no longer publishes the row. NULL: the row is live. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were purged. */
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `crm_objects_deleted` ON `crm_objects` (`_deleted_at`) WHERE _deleted_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `crm_fields` ( /* The fields of each CRM object. */
	`object` text NOT NULL /* Object (`crm_objects.name`). */,
	`name` text NOT NULL /* Field name: a key of `crm_records.fields`, chosen by the CRM's administrators. */,
	`position` integer NOT NULL /* 0-based index in the API's array. */,
	`label` text /* Display name. */,
	`type` text /* Type. The API does not state its values. */,
	`is_nullable` integer /* 1 when a record may have no value. */,
	`is_unique` integer /* 1 when no two records may have the same value. */,
	`is_custom` integer /* 1 for a field that the workspace added, 0 for a standard one. */,
	`is_active` integer /* 1 while in use. */,
	`options` text /* Choices and other settings, free-form. */,
	`relation_type` text /* `MANY_TO_ONE` for a field that points at another record. NULL: the field is not a relation. */,
	`relation_target_object` text /* CRM object that the field points at. Joins `crm_objects.name`. NULL: the field does not point at a CRM object. */,
	`relation_target_resource` text /* Resource of the API that the field points at, such as `members`. NULL: the field does not point at another resource. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were purged. */,
	PRIMARY KEY(`object`, `name`),
	FOREIGN KEY (`object`) REFERENCES `crm_objects`(`name`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `crm_records` ( /* Deals, companies, contacts and all other CRM records that are published to the workspace. */
	`_id` integer PRIMARY KEY NOT NULL /* Internal: number of the row, used by other tables of the file. It changes when the file is rebuilt. */,
	`object` text NOT NULL /* Object (`crm_objects.name`). */,
	`id` text NOT NULL /* Record id. */,
	`visibility` text /* `workspace` for everything that the API lists. */,
	`fields` text /* Field values by field name. Numbers keep every digit that the API sent. */,
	`created_at` text /* When it was created. */,
	`updated_at` text /* When it was last changed. */,
	`created_by_kind` text /* `member`, or another kind. */,
	`created_by_name` text /* Who created it. */,
	`updated_by_kind` text /* `member`, or another kind. */,
	`updated_by_name` text /* Who last changed it. */,
	`_first_seen_at` text NOT NULL /* When the row was first stored. */,
	`_synced_at` text NOT NULL /* When the stored content last changed, including a text that was read later. A row that did not change is not rewritten. */,
	`_deleted_at` text /* When the deletion was confirmed: the API no longer publishes the row. NULL: the row is live. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were purged. */
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
CREATE TABLE `crm_record_changes` ( /* Changes of field values that parley observed between two reads of a record. Rows are only added. */
	`object` text NOT NULL /* Object of the record (`crm_records.object`). */,
	`record_id` text NOT NULL /* Record (`crm_records.id`). */,
	`field` text NOT NULL /* Name of the field, a key of `crm_records.fields`. */,
	`observed_at` text NOT NULL /* When parley read the new value. */,
	`old_value` text /* Previous value, as JSON. A null that the API sent is the text `null`. NULL: the field was absent, or the value was purged. */,
	`new_value` text /* New value, as JSON. A null that the API sent is the text `null`. NULL: the field is absent, or the value was purged. */,
	PRIMARY KEY(`object`, `record_id`, `field`, `observed_at`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `crm_record_links` ( /* Associations of CRM records: deal–company, deal–contact and company–contact. Each pair is stored once, in that direction. */
	`object` text NOT NULL /* `deal` or `company`. */,
	`record_id` text NOT NULL /* Record. Joins `crm_records.id`. */,
	`related_object` text NOT NULL /* `company` or `contact`. */,
	`related_id` text NOT NULL /* Related record. Joins `crm_records.id`. */,
	PRIMARY KEY(`object`, `record_id`, `related_object`, `related_id`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `crm_record_links_by_related` ON `crm_record_links` (`related_object`,`related_id`);
--> statement-breakpoint
CREATE TABLE `access_logs` ( /* The workspace's own API requests. Entries that the API no longer lists are kept. A value that the API could not capture is NULL. */
	`id` text PRIMARY KEY NOT NULL /* Set by parley: a digest of all fields and of a number that counts identical entries. */,
	`occurred_at` text /* When the request was made. */,
	`operation` text /* Display name of the operation. */,
	`method` text /* HTTP method. */,
	`route` text /* Path template, with parameter names. */,
	`path` text /* Path as requested. */,
	`status_code` integer /* HTTP status. */,
	`duration_ms` integer /* How long the request took. Unit: milliseconds. */,
	`response_size_bytes` integer /* Size of the response. Unit: bytes. */,
	`api_key_suffix` text /* Last characters of the API key. */,
	`completion` text /* How the request ended. The API does not state its values. */,
	`_first_seen_at` text NOT NULL /* When the row was first stored. */,
	`_synced_at` text NOT NULL /* When the stored content last changed, including a text that was read later. A row that did not change is not rewritten. */,
	`_deleted_at` text /* When the deletion was confirmed: the API no longer publishes the row. NULL: the row is live. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were purged. */
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `access_logs_by_time` ON `access_logs` ("occurred_at" DESC);
--> statement-breakpoint
CREATE INDEX `access_logs_deleted` ON `access_logs` (`_deleted_at`) WHERE _deleted_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `bot_definition` ( /* The AI bot of the workspace. */
	`id` integer PRIMARY KEY NOT NULL /* Always 1. */,
	`name` text /* Name of the bot. */,
	`message_on_join_active` integer /* 1 when the bot posts a message on joining a meeting. */,
	`message_on_join_frequency` text /* How often it posts the message. The API does not state its values. */,
	`message_on_join_message` text /* The message. */,
	`_first_seen_at` text NOT NULL /* When the row was first stored. */,
	`_synced_at` text NOT NULL /* When the stored content last changed, including a text that was read later. A row that did not change is not rewritten. */,
	`_deleted_at` text /* When the deletion was confirmed: the API no longer publishes the row. NULL: the row is live. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were purged. */
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `bot_definition_deleted` ON `bot_definition` (`_deleted_at`) WHERE _deleted_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `bot_transcription_hints` ( /* Words that the transcription should recognise. */
	`position` integer PRIMARY KEY NOT NULL /* 0-based index in the API's array. */,
	`hint` text /* The word. */,
	`intensity` real /* How strongly the transcription should expect the word. Unit: not stated. */,
	`language` text /* Language code. */,
	`pronunciations` text /* Pronunciations of the word. */,
	`replacements` text /* Replacements. The API does not state whether they replace the word or it replaces them. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were purged. */
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `integrations` ( /* Integrations of the workspace. The API does not state their shape, so the whole document is stored. */
	`id` integer PRIMARY KEY NOT NULL /* Always 1. */,
	`document` text /* The document as sent by the API. NULL: the API sent null, or the value was purged. */,
	`_first_seen_at` text NOT NULL /* When the row was first stored. */,
	`_synced_at` text NOT NULL /* When the stored content last changed, including a text that was read later. A row that did not change is not rewritten. */,
	`_deleted_at` text /* When the deletion was confirmed: the API no longer publishes the row. NULL: the row is live. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were purged. */
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `integrations_deleted` ON `integrations` (`_deleted_at`) WHERE _deleted_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `sync_meta` ( /* Values that concern the whole database. */
	`key` text PRIMARY KEY NOT NULL,
	`value` text
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `sync_resources` ( /* State of each resource; see `sync_status`. */
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
CREATE TABLE `sync_segments` ( /* The segments of all lists, with their checkpoints; see `sync_coverage`. */
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
CREATE TABLE `sync_seen` ( /* Keys that the pass in progress has returned. */
	`feed` text NOT NULL,
	`scope` text NOT NULL,
	`key` text NOT NULL,
	PRIMARY KEY(`feed`, `scope`, `key`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `sync_tasks` ( /* Single reads that wait: first reads, retries and confirmations. */
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
CREATE TABLE `sync_absences` ( /* The earlier name of `sync_suspicions`. */
	`table_name` text NOT NULL,
	`scope` text DEFAULT '' NOT NULL,
	`key` text NOT NULL,
	`missing_since` text NOT NULL,
	`confirmed` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`table_name`, `scope`, `key`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `sync_runs` ( /* One row per run of a resource. */
	`id` integer PRIMARY KEY NOT NULL /* Number of the run. */,
	`resource` text NOT NULL /* Name of the resource. */,
	`lane` text NOT NULL /* `history` until the resource was complete for the first time, then `audit`. */,
	`started_at` text NOT NULL /* When the run started. */,
	`ended_at` text /* When the run ended. NULL: the run is in progress. */,
	`outcome` text /* `complete`, `stopped` (before its end), `failed`, `unavailable` (this workspace does not offer it) or `interrupted` (the process died). NULL: the run is in progress. */,
	`requests` integer DEFAULT 0 NOT NULL /* Requests that the run made. Unit: requests. */,
	`throttled` integer DEFAULT 0 NOT NULL /* Requests among these that the API refused as too many (429). Unit: requests. */,
	`rows_read` integer DEFAULT 0 NOT NULL /* Records that the API sent. Unit: records. */,
	`rows_changed` integer DEFAULT 0 NOT NULL /* Rows written because they were new or had changed. Unit: rows. */,
	`rows_deleted` integer DEFAULT 0 NOT NULL /* Rows whose deletion the run confirmed. Unit: rows. */,
	`error` text /* Error that ended the run. NULL: there was no error. */
) STRICT;
--> statement-breakpoint
CREATE INDEX `sync_runs_by_resource` ON `sync_runs` (`resource`,`started_at`);
--> statement-breakpoint
CREATE TABLE `sync_rejects` ( /* Every item that could not be stored. No received item is dropped without a row here. A span of event time that the API fails to list also has a row here, with the span as its item. */
	`id` integer PRIMARY KEY NOT NULL /* Number of the item. */,
	`resource` text NOT NULL /* Name of the resource. */,
	`item` text NOT NULL /* The item as received, or the span as `from` and `to`. */,
	`reason` text NOT NULL /* Why it could not be stored. */,
	`first_seen_at` text NOT NULL /* When it was first received. */,
	`last_seen_at` text NOT NULL /* When it was last received. */,
	`resolved_at` text /* When the item was stored after all, or when a complete pass no longer listed it. The row is removed some weeks later. NULL: the item is still not stored. */,
	`_feed` text NOT NULL /* Internal: the list or read that returned the item. */,
	`_scope` text DEFAULT '' NOT NULL /* Internal: scope of that list or read; empty where it has none. */,
	`_digest` text NOT NULL /* Internal: digest that identifies the item when it is received again. */
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `sync_rejects_digest` ON `sync_rejects` (`resource`,`_digest`);
