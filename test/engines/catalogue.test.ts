import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { lakeOfTests } from './lake.ts'

const CLIENT = new URL('catalogue-client.mjs', import.meta.url).pathname

test('another client of the specification finds every table and is refused to change one', async () => {
  const { catalogues, token, publications } = lakeOfTests()
  const { stdout } = await promisify(execFile)(process.execPath, [CLIENT, catalogues.folder, token])
  const found = JSON.parse(stdout)
  expect(found).toMatchObject({
    namespace: { namespace: ['parley'] },
    exists: [true, false],
    missing: [404, 'NoSuchTableException'],
    dropping: [403, 'ForbiddenException'],
  })
  const tables = Object.keys(publications.at(-1)?.tables ?? {})
  expect(Object.keys(found.snapshots).sort()).toEqual([...tables, 'publications'].toSorted())
})
