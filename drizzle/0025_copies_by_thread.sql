CREATE INDEX `message_copies_by_thread` ON `message_copies` (`thread_id`);
