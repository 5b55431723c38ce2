"""Spark with two workers of one core each. Answers the questions that `engine-process.ts` describes.

    python spark.py SETTINGS

SETTINGS: a JSON object with the settings of the session. A question is a statement of SQL, or an object with the
address of a table as `path` and one of its snapshots as `snapshot`.
"""

import json
import sys

from pyspark.sql import SparkSession, functions


def start(settings):
    # The master and the workers are processes of their own, which listen on loopback.
    builder = SparkSession.builder.master('local-cluster[2,1,1024]').appName('parley')
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def cell_of(kind, column):
    """The value in a form that Python has for all values: it has no year 0 and no time zone for an instant."""
    if kind == 'timestamp':
        return functions.unix_micros(column).cast('string')
    return column.cast('string') if kind in ('bigint', 'date') or kind.startswith('decimal') else column


def answer(spark, question):
    if isinstance(question, str):
        found = spark.sql(question)
    else:
        found = spark.read.format('iceberg').option('snapshot-id', question['snapshot']).load(question['path'])
    # Names of CRM fields have dots and quotes, which a column's expression would interpret.
    plain = found.toDF(*[f'c{place}' for place in range(len(found.columns))])
    cells = [cell_of(kind, functions.col(name)).alias(name) for name, kind in plain.dtypes]
    return {'columns': found.columns, 'rows': [list(row) for row in plain.select(*cells).collect()]}


if __name__ == '__main__':
    spark = start(json.loads(sys.argv[1]))
    for line in sys.stdin:
        try:
            print(json.dumps(answer(spark, json.loads(line))), flush=True)
        except Exception as error:
            # Without the stack of Java.
            print(json.dumps({'error': str(error).split('\n\tat ')[0]}), flush=True)
    spark.stop()
