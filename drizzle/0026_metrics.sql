CREATE TABLE `metrics` ( /* One number that reports agree on, such as the win rate: `SELECT expression FROM dataset WHERE filter`, with its texts put in. The statement is the same in SQLite, DuckDB, Spark and Trino. */
	`name` text PRIMARY KEY NOT NULL /* Name of the metric. */,
	`label` text NOT NULL /* Its name for people. */,
	`dataset` text NOT NULL /* Table or view that it is computed from. */,
	`expression` text NOT NULL /* SQL of the value, an aggregate. */,
	`filter` text NOT NULL /* SQL of the rows that count. For a period, an owner or a pipeline add a condition with AND. */,
	`unit` text NOT NULL /* Unit of the value. */,
	`is_additive` integer NOT NULL /* 1 where the values of parts, such as owners or months, add up to the value of all. A share or a mean does not. */,
	`description` text NOT NULL /* What it says, and by which day a period is chosen. */,
	`caveat` text NOT NULL /* What is not counted. */
) STRICT, WITHOUT ROWID;
