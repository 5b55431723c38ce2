CREATE TABLE `parley_questions` ( /* Common questions about this file, as SQL to run and to adapt. They come with parley, the program that created this file, and are in the folder `drizzle/questions` of its source. */
	`name` text PRIMARY KEY NOT NULL /* Name of the question. */,
	`question` text NOT NULL /* The question in words. */,
	`parameters` text NOT NULL /* Parameters at the top of the statement: a list of `name`, `value` (an SQL expression) and `about`. */,
	`sql` text NOT NULL /* One statement for SQLite 3.38 or newer. */,
	`duckdb_sql` text NOT NULL /* The same statement for DuckDB, over the views of `parley schema --duckdb` or over Parquet files named after their tables. */
) STRICT;
