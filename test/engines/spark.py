"""Reads a target of parley publish with Spark: a standalone master with two workers, each with one core.

    python3 test/engines/spark.py --check
    python3 test/engines/spark.py FOLDER

FOLDER: one line of JSON for each table at the newest publication: its name, its number of rows, and by column the
number of values that are not null. --check: exit status 0 when Spark can run, else 3 with one line that says what is
missing. Needs Java 17, pyspark, and the Iceberg runtime for its version of Spark and of Scala: the path of the jar in
PARLEY_ICEBERG_JAR, or the jar in pyspark's folder `jars`.

This script has not run with Spark yet: none could be installed where it was written.
"""

import glob
import importlib.util
import json
import os
import pathlib
import shutil
import sys


def missing():
    if shutil.which('java') is None:
        return 'java is missing (Debian: default-jre-headless)'
    found = importlib.util.find_spec('pyspark')
    if found is None:
        return 'pyspark is missing (pip install pyspark)'
    if not jars(os.path.dirname(found.origin)):
        return 'the Iceberg runtime is missing: set PARLEY_ICEBERG_JAR to iceberg-spark-runtime-….jar'
    return None


def jars(pyspark):
    named = os.environ.get('PARLEY_ICEBERG_JAR')
    return [named] if named else glob.glob(os.path.join(pyspark, 'jars', 'iceberg-spark-runtime-*.jar'))


def read(folder):
    import pyspark
    from pyspark.sql import SparkSession, functions

    # The master and the workers listen here too.
    os.environ.setdefault('SPARK_LOCAL_IP', '127.0.0.1')
    spark = (
        SparkSession.builder.master('local-cluster[2,1,1024]')
        .appName('parley-engines')
        .config('spark.jars', ','.join(jars(os.path.dirname(pyspark.__file__))))
        .config('spark.driver.host', '127.0.0.1')
        .config('spark.driver.bindAddress', '127.0.0.1')
        .config('spark.ui.enabled', 'false')
        .config('spark.sql.session.timeZone', 'UTC')
        # Iceberg would take the counts from the manifests, without a look at the rows.
        .config('spark.sql.iceberg.aggregate-push-down.enabled', 'false')
        .getOrCreate()
    )

    def table(name, snapshot=None):
        reader = spark.read.format('iceberg')
        if snapshot is not None:
            reader = reader.option('snapshot-id', snapshot)
        return reader.load((pathlib.Path(folder).resolve() / name).as_uri())

    newest = table('publications').orderBy(functions.desc('publication')).first()
    for name, snapshot in sorted(json.loads(newest['snapshots']).items()):
        rows = table(name, snapshot)
        # Names of CRM fields have dots and quotes, which a column expression would interpret.
        plain = rows.toDF(*[f'c{place}' for place in range(len(rows.columns))])
        counts = plain.agg(functions.count('*'), *[functions.count(column) for column in plain.columns]).first()
        values = dict(zip(rows.columns, counts[1:]))
        print(json.dumps({'table': name, 'rows': counts[0], 'values': values}))
    spark.stop()


if __name__ == '__main__':
    lack = missing()
    if lack is not None:
        print(lack)
        sys.exit(3)
    if sys.argv[1] != '--check':
        read(sys.argv[1])
