import { spawnSync } from 'node:child_process'
import { expect, onTestFinished, test } from 'vitest'
import { type Cell, CLOCK_TABLE } from '../support/published-cells.ts'
import { missingForSpark } from './not-run.ts'
import { startPublished } from './published.ts'

const SPARK = new URL('spark.py', import.meta.url).pathname
const missing = missingForSpark()

test.skipIf(missing !== undefined)(
  'Spark with two workers reads every row and counts every value of every table',
  async () => {
    const published = await startPublished()
    onTestFinished(() => published.trial.close())
    await published.publish()
    const { status, stdout, stderr } = spawnSync('python3', [SPARK, published.folder], { encoding: 'utf8' })
    expect(status, stderr).toBe(0)
    const found = stdout.split('\n').filter(line => line.startsWith('{'))
    const warehouse = [...published.warehouse()].filter(([table]) => table !== CLOCK_TABLE)
    const expected = warehouse.map(([table, { columns, rows }]) => {
      const cells = rows.map(row => JSON.parse(row) as Cell[])
      const count = (place: number) => cells.filter(row => row[place] !== null).length
      const values = Object.fromEntries(columns.map((column, place) => [column, count(place)]))
      return { table, rows: rows.length, values }
    })
    expect(found.map(line => JSON.parse(line)).filter(({ table }) => table !== CLOCK_TABLE)).toEqual(
      expected.toSorted((one, other) => (one.table < other.table ? -1 : 1)),
    )
  },
)
