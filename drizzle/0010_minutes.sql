CREATE TABLE `sync_minutes` ( /* The traffic of each minute in which parley read the API, for two weeks. A minute without a row: parley did not run. */
	`at` text PRIMARY KEY NOT NULL /* Start of the minute. */,
	`requests` integer DEFAULT 0 NOT NULL /* Requests that were answered or failed in this minute. Unit: requests. */,
	`throttled` integer DEFAULT 0 NOT NULL /* Requests among these that the API refused as too many (429). Unit: requests. */,
	`errors` integer DEFAULT 0 NOT NULL /* Requests among these that failed: server errors, a refused key, unreadable answers, timeouts and broken connections. Unit: requests. */,
	`rows` integer DEFAULT 0 NOT NULL /* Rows that were written because they were new, changed or deleted. Unit: rows. */,
	`rate` real /* Rate limit of the API at the end of the minute, as measured. Unit: requests per second. NULL: the API had not shown a limit. */,
	`in_flight` integer DEFAULT 0 NOT NULL /* Most requests in flight at once, of one sample per second. Unit: requests. */,
	`paused_seconds` integer DEFAULT 0 NOT NULL /* Time for which no request was sent, because the API asked to wait or had refused one, or the requests of the day were used up. Unit: seconds. */
) STRICT, WITHOUT ROWID;
