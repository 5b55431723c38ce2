CREATE TABLE `members` ( /* People of the workspace. The API lists only active ones. */
	`id` text PRIMARY KEY NOT NULL /* Member id; `activities.actor_id` and `team_members.member_id` point here. */,
	`name` text /* Display name. */,
	`email` text /* Mail address. */,
	`role` text /* Role in the workspace; the API does not state its values. */,
	`_first_seen_at` text NOT NULL /* When the row was first stored. */,
	`_synced_at` text NOT NULL /* When what is stored of it last changed, also by a text that was read later; a row that did not change is not rewritten. */,
	`_deleted_at` text /* When its absence was confirmed: the API publishes it no longer. NULL: it is live. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were erased after the withdrawal. */
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `members_deleted` ON `members` (`_deleted_at`) WHERE _deleted_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `teams` ( /* Teams of the workspace. */
	`id` text PRIMARY KEY NOT NULL /* Team id. */,
	`name` text /* Team name. */,
	`_first_seen_at` text NOT NULL /* When the row was first stored. */,
	`_synced_at` text NOT NULL /* When what is stored of it last changed, also by a text that was read later; a row that did not change is not rewritten. */,
	`_deleted_at` text /* When its absence was confirmed: the API publishes it no longer. NULL: it is live. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were erased after the withdrawal. */
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `teams_deleted` ON `teams` (`_deleted_at`) WHERE _deleted_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `team_members` ( /* Which members belong to which team. */
	`team_id` text NOT NULL /* Team. Joins `teams.id`. */,
	`member_id` text NOT NULL /* Member; may be one who is no longer listed. Joins `members.id`. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were erased after the withdrawal. */,
	PRIMARY KEY(`team_id`, `member_id`),
	FOREIGN KEY (`team_id`) REFERENCES `teams`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `team_members_by_member` ON `team_members` (`member_id`);
--> statement-breakpoint
CREATE TABLE `collections` ( /* Published, active collections of meetings. */
	`id` text PRIMARY KEY NOT NULL /* Collection id. */,
	`name` text /* Name of the collection. */,
	`description` text /* What people wrote about it. */,
	`visibility` text /* Visibility as the API names it. */,
	`created_at` text /* When it was created. */,
	`updated_at` text /* When it was last changed. */,
	`_first_seen_at` text NOT NULL /* When the row was first stored. */,
	`_synced_at` text NOT NULL /* When what is stored of it last changed, also by a text that was read later; a row that did not change is not rewritten. */,
	`_deleted_at` text /* When its absence was confirmed: the API publishes it no longer. NULL: it is live. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were erased after the withdrawal. */
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `collections_deleted` ON `collections` (`_deleted_at`) WHERE _deleted_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `collection_meetings` ( /* Which meetings a collection holds, as the meeting list filtered by `collection_id` tells. */
	`collection_id` text NOT NULL /* Collection. Joins `collections.id`. */,
	`meeting_id` text NOT NULL /* Meeting. Joins `meetings.id`. */,
	PRIMARY KEY(`collection_id`, `meeting_id`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `collection_meetings_by_meeting` ON `collection_meetings` (`meeting_id`);
--> statement-breakpoint
CREATE TABLE `activities` ( /* The unified timeline: meetings, messages and changes of CRM objects. */
	`_id` integer PRIMARY KEY NOT NULL /* Internal: number of the row, which other parts of the file point at. It changes when the file is made anew. */,
	`id` text NOT NULL /* Activity id. */,
	`type` text /* Kind of activity; the API does not state its values. */,
	`source_type` text /* `MEETING`, `MESSAGE` or `OBJECT_CHANGE_EVENT`. */,
	`source_id` text /* Id of the originating record: `meetings.id` for MEETING, `message_copies.id` for MESSAGE. Whose it is for OBJECT_CHANGE_EVENT the API does not state. */,
	`occurred_at` text /* When it happened. */,
	`created_via` text /* How it was created. The API does not state its values. NULL: the API could not obtain it. */,
	`actor_kind` text /* `member` or `system`. NULL: the API gives no actor. */,
	`actor_id` text /* `members.id` when the actor is a member. NULL: the system caused it, or the member could not be resolved. */,
	`_first_seen_at` text NOT NULL /* When the row was first stored. */,
	`_synced_at` text NOT NULL /* When what is stored of it last changed, also by a text that was read later; a row that did not change is not rewritten. */,
	`_deleted_at` text /* When its absence was confirmed: the API publishes it no longer. NULL: it is live. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were erased after the withdrawal. */
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
	`origin` text NOT NULL /* `DIRECT`: the activity itself points there; `DERIVED`: inferred from another linked record. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were erased after the withdrawal. */,
	PRIMARY KEY(`activity_id`, `context_type`, `context_id`, `origin`),
	FOREIGN KEY (`activity_id`) REFERENCES `activities`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `activity_links_by_context` ON `activity_links` (`context_type`,`context_id`);
--> statement-breakpoint
CREATE TABLE `message_copies` ( /* Every copy of every e-mail, one for each mailbox it was imported from. The text stands in `messages`. */
	`_id` integer PRIMARY KEY NOT NULL /* Internal: number of the row, which other parts of the file point at. It changes when the file is made anew. */,
	`id` text NOT NULL /* The API's message id; `activities.source_id` of a MESSAGE activity points here. */,
	`header_message_id` text /* RFC 5322 Message-ID as the API sent it; may be NULL or empty. Join `messages` by `mail_id`. */,
	`thread_id` text /* Thread; e-mails of one conversation have the same. NULL: the API could not obtain it. */,
	`subject` text /* Subject line. NULL: the share settings hide it or it is empty (the API does not tell which), or it was erased after its withdrawal. */,
	`received_at` text /* When it was sent or received. */,
	`is_internal` integer /* 1 when every FROM, TO and CC is a member. */,
	`is_group_email` integer /* 1 for mailing lists and group addresses. */,
	`text_state` text DEFAULT 'pending' NOT NULL /* Of this copy alone: `pending` (not read, and never read where another copy gave the text), `present`, `empty` (read, and null) or `gone` (404). Ask `messages`. */,
	`_text_due` integer DEFAULT 1 /* Internal: 1 while this copy is the next of its e-mail to have its text read. NULL: its text is not next to be read. */,
	`_first_seen_at` text NOT NULL /* When the row was first stored. */,
	`_synced_at` text NOT NULL /* When what is stored of it last changed, also by a text that was read later; a row that did not change is not rewritten. */,
	`_deleted_at` text /* When its absence was confirmed: the API publishes it no longer. NULL: it is live. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were erased after the withdrawal. */
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
CREATE TABLE `message_copy_participants` ( /* Senders and receivers of each copy, in the order of the API: FROM, TO, CC, BCC, then by address. */
	`message_id` text NOT NULL /* Copy (`message_copies.id`). */,
	`position` integer NOT NULL /* 0-based index in the API's array. */,
	`role` text /* `FROM`, `TO`, `CC` or `BCC`. */,
	`handle` text /* Mail address. */,
	`display_name` text /* Name as written in the mail. */,
	`contact_id` text /* CRM contact (`crm_records.id`). NULL: the API knows none. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were erased after the withdrawal. */,
	PRIMARY KEY(`message_id`, `position`),
	FOREIGN KEY (`message_id`) REFERENCES `message_copies`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `messages` ( /* One row per e-mail: its live copies merged. */
	`_id` integer PRIMARY KEY NOT NULL /* Internal: number of the row, which other parts of the file point at. It changes when the file is made anew. */,
	`header_message_id` text NOT NULL /* RFC 5322 Message-ID, or `id:` and the message id where it has none. */,
	`id` text /* Id of the canonical copy: earliest `received_at`, then smallest id. Joins `message_copies.id`. NULL: it does not occur. */,
	`copy_count` integer /* Number of live copies. Unit: copies. NULL: it does not occur. */,
	`thread_id` text /* Thread; e-mails of one conversation have the same. NULL: no copy has it. */,
	`subject` text /* Subject of the first copy that shows one. NULL: the share settings hide it in every copy or it is empty (the API does not tell which), or it was erased after its withdrawal. */,
	`received_at` text /* When it was sent or received. NULL: no copy has it. */,
	`is_internal` integer /* 1 when every FROM, TO and CC is a member. NULL: no copy has it. */,
	`is_group_email` integer /* 1 for mailing lists and group addresses. NULL: no copy has it. */,
	`text` text /* Full plain text of the first copy that gives one. NULL: `text_state` says why, or it was erased after its withdrawal. */,
	`text_state` text /* `present` where the text is known, else the canonical copy’s: `pending`, `empty` (hidden or really empty) or `gone`. NULL: it does not occur. */,
	`_text_from` integer /* Internal: rowid of the copy that gave the text. NULL: no text is known. */,
	`_first_seen_at` text NOT NULL /* When the row was first stored. */,
	`_synced_at` text NOT NULL /* When what is stored of it last changed, also by a text that was read later; a row that did not change is not rewritten. */,
	`_deleted_at` text /* When its absence was confirmed: the API publishes it no longer. NULL: it is live. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were erased after the withdrawal. */
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
CREATE TABLE `meetings` ( /* Recorded meetings. Of one that is withheld (`access`) only what was known before is here, which may be its id alone. */
	`_id` integer PRIMARY KEY NOT NULL /* Internal: number of the row, which other parts of the file point at. It changes when the file is made anew. */,
	`id` text NOT NULL /* Meeting id. */,
	`url` text /* Link to the meeting in the product. */,
	`workspace_id` text /* Workspace, the same in every row. */,
	`title` text /* Title. */,
	`platform` text /* Conferencing platform. */,
	`start_time` text /* When it began. */,
	`end_time` text /* When it ended. */,
	`recording_duration` integer /* Length of the recording. Unit: not stated. */,
	`base_type` text /* Kind of meeting. The API does not state its values. */,
	`recording_source` text /* Where the recording comes from. The API does not state its values. */,
	`overview_status` text /* State of summaries and action items; `COMPLETED` when they are there. The API does not state its other values. */,
	`crm_type` text /* Kind of linked CRM. The API does not state its values. */,
	`meeting_type_name` text /* Type of meeting as the workspace names it. */,
	`transcript_languages` text /* Language codes of the transcript. */,
	`owner_name` text /* Name of the owner. */,
	`owner_email` text /* Mail address of the owner. */,
	`access` text /* `open`, or `withheld` when the API answers 403. NULL: its detail was not read yet. */,
	`transcript_state` text DEFAULT 'pending' NOT NULL /* `pending` (no answer yet), `present`, `empty` (the last answer was an empty list), `withheld` (403) or `gone` (404). */,
	`_first_seen_at` text NOT NULL /* When the row was first stored. */,
	`_synced_at` text NOT NULL /* When what is stored of it last changed, also by a text that was read later; a row that did not change is not rewritten. */,
	`_deleted_at` text /* When its absence was confirmed: the API publishes it no longer. NULL: it is live. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were erased after the withdrawal. */
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
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were erased after the withdrawal. */,
	PRIMARY KEY(`meeting_id`, `team_id`),
	FOREIGN KEY (`meeting_id`) REFERENCES `meetings`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `meeting_attendees` ( /* Who took part. */
	`meeting_id` text NOT NULL /* Meeting. Joins `meetings.id`. */,
	`position` integer NOT NULL /* 0-based index in the API's array. */,
	`name` text /* Name of the person. */,
	`email` text /* Mail address. */,
	`is_workspace_member` integer /* 1 for members of the workspace. */,
	`is_internal` integer /* 1 for people of our side. */,
	`contact_id` text /* CRM contact (`crm_records.id`). NULL: the API knows none. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were erased after the withdrawal. */,
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
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were erased after the withdrawal. */,
	PRIMARY KEY(`meeting_id`, `attendee_position`, `team_id`),
	FOREIGN KEY (`meeting_id`,`attendee_position`) REFERENCES `meeting_attendees`(`meeting_id`,`position`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `meeting_crm_records` ( /* CRM records that the meeting is linked to. */
	`meeting_id` text NOT NULL /* Meeting. Joins `meetings.id`. */,
	`position` integer NOT NULL /* 0-based index in the API's array. */,
	`record_id` text /* Id in the CRM itself; the API does not say that it is a `crm_records.id`. */,
	`record_name` text /* Name of the record. */,
	`record_url` text /* Where the CRM shows the record. */,
	`record_object_type` text /* What the CRM calls its kind, such as `Opportunity`. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were erased after the withdrawal. */,
	PRIMARY KEY(`meeting_id`, `position`),
	FOREIGN KEY (`meeting_id`) REFERENCES `meetings`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `meeting_related_objects` ( /* Companies, contacts and deals that the meeting belongs to. */
	`meeting_id` text NOT NULL /* Meeting. Joins `meetings.id`. */,
	`position` integer NOT NULL /* 0-based index in the API's array. */,
	`object_type` text /* Kind of the object, such as `company`. */,
	`object_id` text /* Id of the object (`crm_records.id`). */,
	`display_name` text /* Name of the object. */,
	`is_internal` integer /* 1 for an object of our side. */,
	`company_ids` text /* Ids of the companies it belongs to. */,
	`crm_record_id` text /* Id of the CRM’s own record of it, as in `meeting_crm_records`. */,
	`crm_record_name` text /* Name of that record. */,
	`crm_record_url` text /* Where the CRM shows that record. */,
	`crm_record_object_type` text /* What the CRM calls its kind, such as `Account`. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were erased after the withdrawal. */,
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
	`speaker_ratio` real /* Share of the talking. Unit: not stated. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were erased after the withdrawal. */,
	PRIMARY KEY(`meeting_id`, `position`),
	FOREIGN KEY (`meeting_id`) REFERENCES `meetings`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `meeting_chapters` ( /* Chapters of the generated summary. */
	`meeting_id` text NOT NULL /* Meeting. Joins `meetings.id`. */,
	`position` integer NOT NULL /* 0-based index in the API's array. */,
	`title` text /* Title of the chapter. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were erased after the withdrawal. */,
	PRIMARY KEY(`meeting_id`, `position`),
	FOREIGN KEY (`meeting_id`) REFERENCES `meetings`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `meeting_chapter_items` ( /* The points of a summary’s chapter. */
	`meeting_id` text NOT NULL /* Meeting. Joins `meeting_chapters.meeting_id`. */,
	`chapter_position` integer NOT NULL /* Chapter (`meeting_chapters.position`). */,
	`position` integer NOT NULL /* 0-based index in the API's array. */,
	`item` text /* The point, as a sentence. */,
	`time` integer /* Where in the meeting it came up. Unit: not stated. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were erased after the withdrawal. */,
	PRIMARY KEY(`meeting_id`, `chapter_position`, `position`),
	FOREIGN KEY (`meeting_id`,`chapter_position`) REFERENCES `meeting_chapters`(`meeting_id`,`position`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `meeting_action_items` ( /* What was agreed to be done. */
	`meeting_id` text NOT NULL /* Meeting. Joins `meetings.id`. */,
	`id` text NOT NULL /* Action item id. */,
	`position` integer NOT NULL /* 0-based index in the API's array. */,
	`text` text /* What is to be done. */,
	`detail` text /* More about it. */,
	`due_date` text /* Day by which it is to be done. */,
	`time` integer /* Where in the meeting it was said. Unit: not stated. */,
	`completed` integer /* 1 when done. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were erased after the withdrawal. */,
	PRIMARY KEY(`meeting_id`, `id`),
	FOREIGN KEY (`meeting_id`) REFERENCES `meetings`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `transcript_entries` ( /* What was said, in order. */
	`_id` integer PRIMARY KEY NOT NULL /* Internal: number of the row, which other parts of the file point at. It changes when the file is made anew. */,
	`meeting_id` text NOT NULL /* Meeting. Joins `meetings.id`. */,
	`position` integer NOT NULL /* 0-based index in the API's array. */,
	`speaker_id` text /* Tells the speakers of one meeting apart. */,
	`speaker_name` text /* Name of the speaker. */,
	`contact_id` text /* CRM contact (`crm_records.id`). NULL: the API knows none. */,
	`text` text /* What was said. */,
	`elapsed_seconds` real /* When it was said, since the start. Unit: seconds. */,
	`words` text /* Array of `[text, start_time, end_time]`; see the view `transcript_words`. Unit: not stated. NULL: the API gave none, or `transcripts.words` is off. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were erased after the withdrawal. */
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `transcript_entries_key` ON `transcript_entries` (`meeting_id`,`position`);
--> statement-breakpoint
CREATE TABLE `playbook_results` ( /* The latest result of each playbook for each meeting. */
	`id` text PRIMARY KEY NOT NULL /* Result id. */,
	`meeting_id` text NOT NULL /* Meeting. Joins `meetings.id`. */,
	`playbook_id` text /* Playbook. Joins `playbooks.id`. */,
	`playbook_name` text /* Name of the playbook at that time. */,
	`created_at` text /* When it was made. */,
	`_first_seen_at` text NOT NULL /* When the row was first stored. */,
	`_synced_at` text NOT NULL /* When what is stored of it last changed, also by a text that was read later; a row that did not change is not rewritten. */,
	`_deleted_at` text /* When its absence was confirmed: the API publishes it no longer. NULL: it is live. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were erased after the withdrawal. */
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `playbook_results_by_meeting` ON `playbook_results` (`meeting_id`);
--> statement-breakpoint
CREATE INDEX `playbook_results_deleted` ON `playbook_results` (`_deleted_at`) WHERE _deleted_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `talk_point_results` ( /* The answer to each of a playbook’s questions. */
	`playbook_result_id` text NOT NULL /* Result. Joins `playbook_results.id`. */,
	`id` text NOT NULL /* Id of the answer. */,
	`talk_point_id` text /* Question (`playbook_talk_points.id`). */,
	`question` text /* The question as it was asked. */,
	`answer` text /* What the meeting says to it. */,
	`created_at` text /* When it was answered. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were erased after the withdrawal. */,
	PRIMARY KEY(`playbook_result_id`, `id`),
	FOREIGN KEY (`playbook_result_id`) REFERENCES `playbook_results`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `playbooks` ( /* Question templates that are run against meetings. */
	`id` text PRIMARY KEY NOT NULL /* Playbook id. */,
	`name` text /* Name of the playbook. */,
	`active` integer /* 1 while it is in use. The list shows only these; inactive ones stay readable. */,
	`updated_at` text /* When it was last changed. */,
	`execution_setting` text /* When it runs by itself, as the API sent it. NULL: it was not read yet, or the API gives none, or it was erased after its withdrawal. */,
	`_first_seen_at` text NOT NULL /* When the row was first stored. */,
	`_synced_at` text NOT NULL /* When what is stored of it last changed, also by a text that was read later; a row that did not change is not rewritten. */,
	`_deleted_at` text /* When its absence was confirmed: the API publishes it no longer. NULL: it is live. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were erased after the withdrawal. */
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `playbooks_deleted` ON `playbooks` (`_deleted_at`) WHERE _deleted_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `playbook_talk_points` ( /* The questions of a playbook. */
	`playbook_id` text NOT NULL /* Playbook. Joins `playbooks.id`. */,
	`id` text NOT NULL /* Question id. */,
	`question` text /* The question. */,
	`description` text /* What is meant by the question. */,
	`order` integer /* Place within the playbook. */,
	`target` text /* What it is asked of. The API does not state its values. */,
	`data_type` text /* Kind of answer. The API does not state its values. */,
	`format_style` text /* Form of the answer. The API does not state its values. */,
	`character_limit` integer /* Longest answer. Unit: characters. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were erased after the withdrawal. */,
	PRIMARY KEY(`playbook_id`, `id`),
	FOREIGN KEY (`playbook_id`) REFERENCES `playbooks`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `crm_objects` ( /* The CRM objects of the workspace, and the typed table of each. */
	`name` text PRIMARY KEY NOT NULL /* API name, such as `deal`. */,
	`name_plural` text /* API name in the plural. */,
	`label` text /* Name that people see. */,
	`label_plural` text /* That name in the plural. */,
	`is_custom` integer /* 1 for an object that the workspace added, 0 for a standard one. */,
	`is_active` integer /* 1 while in use. */,
	`_first_seen_at` text NOT NULL /* When the row was first stored. */,
	`_synced_at` text NOT NULL /* When what is stored of it last changed, also by a text that was read later; a row that did not change is not rewritten. */,
	`_deleted_at` text /* When its absence was confirmed: the API publishes it no longer. NULL: it is live. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were erased after the withdrawal. */
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `crm_objects_deleted` ON `crm_objects` (`_deleted_at`) WHERE _deleted_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `crm_fields` ( /* The fields of each CRM object. */
	`object` text NOT NULL /* Object (`crm_objects.name`). */,
	`name` text NOT NULL /* Field name: a key of `crm_records.fields`, as the CRM's administrators chose it. */,
	`position` integer NOT NULL /* 0-based index in the API's array. */,
	`label` text /* Name that people see. */,
	`type` text /* Type as the API names it. */,
	`is_nullable` integer /* 1 when a record may have none. */,
	`is_unique` integer /* 1 when no two records have the same. */,
	`is_custom` integer /* 1 for a field that the workspace added, 0 for a standard one. */,
	`is_active` integer /* 1 while in use. */,
	`options` text /* Choices and other settings, free-form. */,
	`relation_type` text /* `MANY_TO_ONE` for a field that points at another record. NULL: it points at nothing. */,
	`relation_target_object` text /* Object that it points at. Joins `crm_objects.name`. NULL: it points at no object of the CRM. */,
	`relation_target_resource` text /* Resource of the API that it points at, such as `members`. NULL: it points at no other resource. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were erased after the withdrawal. */,
	PRIMARY KEY(`object`, `name`),
	FOREIGN KEY (`object`) REFERENCES `crm_objects`(`name`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `crm_records` ( /* Deals, companies, contacts and every other CRM record that is published to the workspace. */
	`_id` integer PRIMARY KEY NOT NULL /* Internal: number of the row, which other parts of the file point at. It changes when the file is made anew. */,
	`object` text NOT NULL /* Object (`crm_objects.name`). */,
	`id` text NOT NULL /* Record id. */,
	`visibility` text /* `workspace` for everything that the API lists. */,
	`fields` text /* Field values by field name, every digit as the API wrote it. */,
	`created_at` text /* When it was created. */,
	`updated_at` text /* When it was last changed. */,
	`created_by_kind` text /* `member`, or another kind. */,
	`created_by_name` text /* Who created it. */,
	`updated_by_kind` text /* `member`, or another kind. */,
	`updated_by_name` text /* Who last changed it. */,
	`_first_seen_at` text NOT NULL /* When the row was first stored. */,
	`_synced_at` text NOT NULL /* When what is stored of it last changed, also by a text that was read later; a row that did not change is not rewritten. */,
	`_deleted_at` text /* When its absence was confirmed: the API publishes it no longer. NULL: it is live. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were erased after the withdrawal. */
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
CREATE TABLE `crm_record_changes` ( /* What parley saw change in a record from one reading to the next. It only grows. */
	`object` text NOT NULL /* Object of the record (`crm_records.object`). */,
	`record_id` text NOT NULL /* Record (`crm_records.id`). */,
	`field` text NOT NULL /* Name of the field, a key of `crm_records.fields`. */,
	`observed_at` text NOT NULL /* When parley read the new value. */,
	`old_value` text /* What it was, as JSON: a null of the API is the text `null`. NULL: the field was absent, or it was erased after its withdrawal. */,
	`new_value` text /* What it is since then, as JSON: a null of the API is the text `null`. NULL: the field is absent, or it was erased after its withdrawal. */,
	PRIMARY KEY(`object`, `record_id`, `field`, `observed_at`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `crm_record_links` ( /* Which records belong together: deal–company, deal–contact, company–contact, each pair once. */
	`object` text NOT NULL /* `deal` or `company`. */,
	`record_id` text NOT NULL /* Record. Joins `crm_records.id`. */,
	`related_object` text NOT NULL /* `company` or `contact`. */,
	`related_id` text NOT NULL /* Related record. Joins `crm_records.id`. */,
	PRIMARY KEY(`object`, `record_id`, `related_object`, `related_id`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `crm_record_links_by_related` ON `crm_record_links` (`related_object`,`related_id`);
--> statement-breakpoint
CREATE TABLE `access_logs` ( /* The workspace's own use of the API. Entries that the API no longer lists stay; what it could not capture is NULL. */
	`id` text PRIMARY KEY NOT NULL /* Ours: a digest of all fields and of the number among entries alike in every field. */,
	`occurred_at` text /* When the request was made. */,
	`operation` text /* Display name of the operation. */,
	`method` text /* HTTP method. */,
	`route` text /* Path with its parameters by name. */,
	`path` text /* Path as it was asked for. */,
	`status_code` integer /* HTTP status. */,
	`duration_ms` integer /* How long it took. Unit: milliseconds. */,
	`response_size_bytes` integer /* Size of the answer. Unit: bytes. */,
	`api_key_suffix` text /* Last characters of the key that was used. */,
	`completion` text /* How the request ended. The API does not state its values. */,
	`_first_seen_at` text NOT NULL /* When the row was first stored. */,
	`_synced_at` text NOT NULL /* When what is stored of it last changed, also by a text that was read later; a row that did not change is not rewritten. */,
	`_deleted_at` text /* When its absence was confirmed: the API publishes it no longer. NULL: it is live. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were erased after the withdrawal. */
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `access_logs_by_time` ON `access_logs` ("occurred_at" DESC);
--> statement-breakpoint
CREATE INDEX `access_logs_deleted` ON `access_logs` (`_deleted_at`) WHERE _deleted_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `bot_definition` ( /* The AI bot of the workspace. */
	`id` integer PRIMARY KEY NOT NULL /* Always 1. */,
	`name` text /* Name of the bot. */,
	`message_on_join_active` integer /* 1 when it greets on joining. */,
	`message_on_join_frequency` text /* How often it greets. The API does not state its values. */,
	`message_on_join_message` text /* What it says. */,
	`_first_seen_at` text NOT NULL /* When the row was first stored. */,
	`_synced_at` text NOT NULL /* When what is stored of it last changed, also by a text that was read later; a row that did not change is not rewritten. */,
	`_deleted_at` text /* When its absence was confirmed: the API publishes it no longer. NULL: it is live. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were erased after the withdrawal. */
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `bot_definition_deleted` ON `bot_definition` (`_deleted_at`) WHERE _deleted_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `bot_transcription_hints` ( /* Words that the transcription is told to expect. */
	`position` integer PRIMARY KEY NOT NULL /* 0-based index in the API's array. */,
	`hint` text /* Word that it is to know. */,
	`intensity` real /* How strongly it is expected. Unit: not stated. */,
	`language` text /* Language code. */,
	`pronunciations` text /* How it is pronounced. */,
	`replacements` text /* Words that replace it or that it replaces: the API does not say which. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were erased after the withdrawal. */
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `integrations` ( /* Workspace-level integrations. The API does not show their shape, so the document is kept whole. */
	`id` integer PRIMARY KEY NOT NULL /* Always 1. */,
	`document` text /* As the API sent it. NULL: the API sent null, or it was erased after its withdrawal. */,
	`_first_seen_at` text NOT NULL /* When the row was first stored. */,
	`_synced_at` text NOT NULL /* When what is stored of it last changed, also by a text that was read later; a row that did not change is not rewritten. */,
	`_deleted_at` text /* When its absence was confirmed: the API publishes it no longer. NULL: it is live. */,
	`_extra` text /* JSON object of fields that the API sent and that have no column here, and of values that do not fit their column. NULL: there are none, or they were erased after the withdrawal. */
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `integrations_deleted` ON `integrations` (`_deleted_at`) WHERE _deleted_at IS NOT NULL;
--> statement-breakpoint
CREATE TABLE `sync_meta` ( /* Values of the database as a whole. */
	`key` text PRIMARY KEY NOT NULL,
	`value` text
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `sync_resources` ( /* What is known of each resource; `sync_status` tells it. */
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
CREATE TABLE `sync_segments` ( /* The ledger of what was listed; `sync_coverage` tells it. */
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
CREATE TABLE `sync_seen` ( /* Keys that a pass under way has seen. */
	`feed` text NOT NULL,
	`scope` text NOT NULL,
	`key` text NOT NULL,
	PRIMARY KEY(`feed`, `scope`, `key`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `sync_tasks` ( /* Reads that are to be made, repeated or confirmed. */
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
CREATE TABLE `sync_absences` ( /* Rows that the API has denied once or twice and that are not deleted yet. */
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
	`lane` text NOT NULL /* `history` until the resource was complete once, then `audit`. */,
	`started_at` text NOT NULL /* When it began. */,
	`ended_at` text /* When it ended. NULL: it is under way. */,
	`outcome` text /* `complete`, `stopped` before its end, `failed`, `unavailable` (not offered here) or `interrupted` (the process died). NULL: it is under way. */,
	`requests` integer DEFAULT 0 NOT NULL /* Requests that it made. Unit: requests. */,
	`throttled` integer DEFAULT 0 NOT NULL /* Of these, refused as too many (429). Unit: requests. */,
	`rows_read` integer DEFAULT 0 NOT NULL /* Records that the API sent. Unit: records. */,
	`rows_changed` integer DEFAULT 0 NOT NULL /* Rows written because they were new or had changed. Unit: rows. */,
	`rows_deleted` integer DEFAULT 0 NOT NULL /* Rows whose absence it confirmed. Unit: rows. */,
	`error` text /* What went wrong. NULL: nothing. */
) STRICT;
--> statement-breakpoint
CREATE INDEX `sync_runs_by_resource` ON `sync_runs` (`resource`,`started_at`);
--> statement-breakpoint
CREATE TABLE `sync_rejects` ( /* Every item that could not be stored. Nothing received is dropped without a row here. A span of event time in which the API cannot answer for some row has a row here too, with the span as its item. */
	`id` integer PRIMARY KEY NOT NULL /* Number of the item. */,
	`resource` text NOT NULL /* Name of the resource. */,
	`item` text NOT NULL /* As received; or the span, as `from` and `to`. */,
	`reason` text NOT NULL /* Why it could not be stored. */,
	`first_seen_at` text NOT NULL /* When it was first received. */,
	`last_seen_at` text NOT NULL /* When it was last received. */,
	`resolved_at` text /* When it was stored after all, or was no longer in anything that is still read. It is removed some weeks later. NULL: it is still so. */,
	`_feed` text NOT NULL /* Internal: the list or read that brought it. */,
	`_scope` text DEFAULT '' NOT NULL /* Internal: what was asked for there; empty where nothing was. */,
	`_digest` text NOT NULL /* Internal: tells the same item, seen again, from another one. */
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `sync_rejects_digest` ON `sync_rejects` (`resource`,`_digest`);
