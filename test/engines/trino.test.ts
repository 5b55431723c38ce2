import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parley } from '../cli/parley.ts'
import { ASKED, expectAnswer } from './answers.ts'
import { type Engine, jarsOf, javaHome, startEngine } from './engine-process.ts'
import { expectEarlier, expectNewest, expectViews, lakeOfTests, statementsIn } from './lake.ts'

const PAGE = readFileSync(new URL('../../drizzle/engines.md', import.meta.url), 'utf8')
const lake = lakeOfTests()

let trino: Engine

/** The properties that the page shows, for the catalogue of a bucket. */
function propertiesOfPage(url: string): Record<string, string> {
  const [, block = ''] = /^```properties\nconnector\.name=iceberg\n(.*?)^```$/ms.exec(PAGE) ?? []
  const lines = block.matchAll(/^([^#\s][^=]*)=(.*)$/gm)
  const shown = Object.fromEntries([...lines].map(([, key = '', value = '']) => [key, value]))
  expect(shown['iceberg.rest-catalog.oauth2.token']).toMatch(/^\$\{ENV:/)
  return {
    ...shown,
    'iceberg.rest-catalog.uri': url,
    'iceberg.rest-catalog.oauth2.token': lake.token,
    's3.region': lake.bucket.region,
    's3.endpoint': lake.bucket.endpoint,
    's3.path-style-access': 'true',
    's3.aws-access-key': lake.bucket.keyId,
    's3.aws-secret-key': lake.bucket.secret,
  }
}

beforeAll(() => {
  const home = javaHome(24, 25)
  const catalogs = {
    lake: propertiesOfPage(lake.catalogues.bucket),
    week: propertiesOfPage(lake.week.catalogues.bucket),
  }
  const program = new URL('trino/Reader.java', import.meta.url).pathname
  trino = startEngine({
    name: 'Trino',
    command: join(home, 'bin/java'),
    args: [
      '-Xmx3g',
      // Trino uses vectors where the Java has them.
      ...['--add-modules', 'jdk.incubator.vector'],
      ...['-cp', jarsOf('trino').join(':'), program, JSON.stringify(catalogs)],
    ],
  })
})

afterAll(() => trino?.close())

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

const read = (table: string, snapshot?: number) => {
  const version = snapshot === undefined ? '' : ` FOR VERSION AS OF BIGINT '${snapshot}'`
  return trino.ask(`SELECT * FROM lake.parley.${quoted(table)}${version}`)
}

/** Trino shows the columns of tables in lower case. */
const shown = (name: string) => name.toLowerCase()

test('Trino reads every value of every table as SQLite has it', () => expectNewest({ read, shown }))

test('Trino reads every value of the earlier publications', () => expectEarlier({ read, shown }))

test('Trino has the rows of every view that parley schema prints', async () => {
  const { stdout } = await parley(['schema', '--trino', '--database', lake.database])
  await expectViews(trino, { printed: stdout, from: quoted })
})

describe('Trino, with the catalogue of a bucket and the printed views,', () => {
  beforeAll(async () => {
    // The tables under their own names, in the catalog in which questions are asked.
    for (const table of lake.week.tables)
      await trino.ask(`CREATE OR REPLACE VIEW ${quoted(table)} AS SELECT * FROM week.parley.${quoted(table)}`)
    const printed = ['schema', '--trino', '--catalogue', 'week.parley', '--database', lake.week.database]
    const { stdout } = await parley(printed)
    for (const statement of statementsIn(stdout)) await trino.ask(statement)
  })

  test.each(ASKED)('answers $name as SQLite does', ({ sql }) => expectAnswer(trino.ask, sql))
})
