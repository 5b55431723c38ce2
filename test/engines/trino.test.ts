import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parley } from '../cli/parley.ts'
import { type Engine, jarsOf, javaHome, startEngine } from './engine-process.ts'
import { expectEarlier, expectNewest, expectViews, lakeOfTests } from './lake.ts'

const PAGE = readFileSync(new URL('../../drizzle/engines.md', import.meta.url), 'utf8')
const lake = lakeOfTests()

let trino: Engine

/** The properties that the page shows, for the catalogue of the bucket. */
function propertiesOfPage(): Record<string, string> {
  const [, block = ''] = /^```properties\nconnector\.name=iceberg\n(.*?)^```$/ms.exec(PAGE) ?? []
  const lines = block.matchAll(/^([^#\s][^=]*)=(.*)$/gm)
  const shown = Object.fromEntries([...lines].map(([, key = '', value = '']) => [key, value]))
  expect(shown['iceberg.rest-catalog.oauth2.token']).toMatch(/^\$\{ENV:/)
  return {
    ...shown,
    'iceberg.rest-catalog.uri': lake.catalogues.bucket,
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
  const program = new URL('trino/Reader.java', import.meta.url).pathname
  trino = startEngine({
    name: 'Trino',
    command: join(home, 'bin/java'),
    args: [
      '-Xmx3g',
      // Trino uses vectors where the Java has them.
      ...['--add-modules', 'jdk.incubator.vector'],
      ...['-cp', jarsOf('trino').join(':'), program, JSON.stringify({ lake: propertiesOfPage() })],
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
