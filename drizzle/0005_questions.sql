CREATE TABLE `parley_questions` ( /* Common questions about this file, as SQL to run and to adapt. They come with parley, the program that created this file, and are in the folder `drizzle/questions` of its source. */
	`name` text PRIMARY KEY NOT NULL /* Name of the question. */,
	`question` text NOT NULL /* The question in words. */,
	`parameters` text NOT NULL /* Parameters at the top of the statement: a list of `name`, `value` (an SQL expression) and `about`. */,
	`sql` text NOT NULL /* One statement, the same for SQLite from 3.39 on, DuckDB, Spark and Trino, over the tables and views of this page. */,
	`duckdb_sql` text NOT NULL /* The same as `sql`, which had another form in DuckDB before. */
) STRICT;
