CREATE TABLE `member_versions` ( /* One member between two changes: the name, the address, and whether the person was a member. The versions of a member leave no gap. In a file of an earlier version of parley, the first version is the state at the upgrade. */
	`member_id` text NOT NULL /* Member. Joins `members.id`. */,
	`from_at` text NOT NULL /* When it began: when parley read it. */,
	`to_at` text /* When the next version began, or this one ended. NULL: it is the present one. */,
	`name` text /* Display name; of a former member the last one. NULL: the API sent none, or it was purged. */,
	`email` text /* E-mail address; of a former member the last one. NULL: the API sent none, or it was purged. */,
	`is_member` integer NOT NULL /* 0 while the API did not publish the person as a member. */,
	PRIMARY KEY(`member_id`, `from_at`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `team_versions` ( /* One member in a team between two changes. A member who leaves the team, a team that is deleted, and a new name of the team end a version. The team may still name a member who has left the workspace: see `member_versions`. */
	`team_id` text NOT NULL /* Team. Joins `teams.id`. */,
	`member_id` text NOT NULL /* Member of the team. Joins `members.id`. */,
	`from_at` text NOT NULL /* When it began: when parley read it. */,
	`to_at` text /* When the next version began, or this one ended. NULL: it is the present one. */,
	`team` text /* Name of the team. NULL: the API sent none, or it was purged. */,
	PRIMARY KEY(`team_id`, `member_id`, `from_at`)
) STRICT, WITHOUT ROWID;
