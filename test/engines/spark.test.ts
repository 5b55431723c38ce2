import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parley } from '../cli/parley.ts'
import { ASKED, expectAnswer } from './answers.ts'
import { type Engine, installed, jarsOf, javaHome, startEngine } from './engine-process.ts'
import { expectEarlier, expectNewest, expectViews, lakeOfTests, sortedRows, statementsIn } from './lake.ts'

const PAGE = readFileSync(new URL('../../drizzle/engines.md', import.meta.url), 'utf8')
const lake = lakeOfTests()

/** Compiling for a long life would take more time than it saves. */
const SHORT_LIFE = '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC'

let spark: Engine

/** The settings that the page shows, for this catalogue. */
function settingsOfPage(url: string, name: string): Record<string, string> {
  const [, block = ''] = /^\(umask 077 && cat > lake\.conf\) <<EOF\n(.*?)^EOF$/ms.exec(PAGE) ?? []
  const lines = block.matchAll(/^(\S+) +(.*)$/gm)
  const shown = Object.fromEntries([...lines].map(([, key = '', value = '']) => [key, value]))
  const { 'spark.jars.packages': packages, ...settings } = shown
  expect(packages).toMatch(/^org\.apache\.iceberg:iceberg-spark-runtime-3\.5_2\.12:/)
  const values = {
    ...settings,
    'spark.sql.catalog.lake.uri': url,
    'spark.sql.catalog.lake.token': lake.token,
  }
  return Object.fromEntries(
    Object.entries(values).map(([key, value]) => [
      key.replace('spark.sql.catalog.lake', `spark.sql.catalog.${name}`),
      value,
    ]),
  )
}

beforeAll(async () => {
  const { bucket, catalogues, folder, week } = lake
  const settings = {
    'spark.jars': jarsOf('spark').join(),
    'spark.driver.host': '127.0.0.1',
    'spark.driver.bindAddress': '127.0.0.1',
    'spark.driver.memory': '1g',
    'spark.driver.extraJavaOptions': SHORT_LIFE,
    'spark.executor.extraJavaOptions': SHORT_LIFE,
    'spark.ui.enabled': 'false',
    ...settingsOfPage(catalogues.folder, 'lake'),
    ...settingsOfPage(catalogues.bucket, 'bucket'),
    ...settingsOfPage(week.catalogues.folder, 'week'),
    'spark.sql.catalog.bucket.s3.endpoint': bucket.endpoint,
    'spark.sql.catalog.bucket.s3.path-style-access': 'true',
    'spark.sql.catalog.parley': 'org.apache.iceberg.spark.SparkCatalog',
    'spark.sql.catalog.parley.type': 'hadoop',
    'spark.sql.catalog.parley.warehouse': `file://${join(folder, '..')}`,
    'spark.sql.catalog.parley.cache-enabled': 'false',
  }
  const access = {
    AWS_REGION: bucket.region,
    AWS_ACCESS_KEY_ID: bucket.keyId,
    AWS_SECRET_ACCESS_KEY: bucket.secret,
  }
  spark = startEngine({
    name: 'Spark',
    command: installed('spark', 'python/bin/python'),
    args: [new URL('spark.py', import.meta.url).pathname, JSON.stringify(settings)],
    env: { ...access, JAVA_HOME: javaHome(17, 17), SPARK_LOCAL_IP: '127.0.0.1' },
  })
})

afterAll(() => spark?.close())

const quoted = (name: string): string => `\`${name.replaceAll('`', '``')}\``

test.each([
  ['every table, with the catalogue of a folder', 'lake.parley', expectNewest],
  ['every table, with the catalogue of a bucket', 'bucket.parley', expectNewest],
  ['the earlier publications, with the catalogue of a bucket', 'bucket.parley', expectEarlier],
  ['the earlier publications, with a catalog of the type hadoop', 'parley.lake', expectEarlier],
])('Spark reads every value of %s', (_, namespace, expectAll) =>
  expectAll({
    read: (table, snapshot) => {
      const version = snapshot === undefined ? '' : ` VERSION AS OF ${snapshot}`
      return spark.ask(`SELECT * FROM ${namespace}.${quoted(table)}${version}`)
    },
  }),
)

test('Spark reads a table by its path, also as of a snapshot', async () => {
  const path = `file://${lake.folder}/messages`
  const { rows } = await spark.ask('SELECT * FROM lake.parley.messages VERSION AS OF 1')
  const found = await spark.ask({ path, snapshot: 1 })
  expect(sortedRows(found.rows)).toEqual(sortedRows(rows))
})

test('Spark has the rows of every view that parley schema prints', async () => {
  const { stdout } = await parley(['schema', '--spark', '--database', lake.database])
  await expectViews(spark, { printed: stdout.replaceAll('\\;', ';'), from: quoted })
})

describe('Spark, with the catalogue and the printed views,', () => {
  beforeAll(async () => {
    await spark.ask('USE week.parley')
    const printed = ['schema', '--spark', '--catalogue', 'week.parley', '--database', lake.week.database]
    const { stdout } = await parley(printed)
    for (const statement of statementsIn(stdout.replaceAll('\\;', ';'))) await spark.ask(statement)
  })

  test.each(ASKED)('answers $name as SQLite does', ({ sql }) => expectAnswer(spark.ask, sql))
})
