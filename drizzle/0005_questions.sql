CREATE TABLE `parley_questions` ( /* Questions that people ask this file, as SQL to run and to change. They come with parley, the program that made this file, and are in the folder `drizzle/questions` of its source. */
	`name` text PRIMARY KEY NOT NULL /* Name of the question. */,
	`question` text NOT NULL /* The question in words. */,
	`parameters` text NOT NULL /* What can be changed at the top of the statement: a list of `name`, `value` (an SQL expression) and `about`. */,
	`sql` text NOT NULL /* One statement for SQLite 3.38 or newer. */,
	`duckdb_sql` text NOT NULL /* The same for DuckDB, over the views of `parley schema --duckdb`, or Parquet files under the names of their tables. */
) STRICT;
