import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { emptyFolder, startParley } from '../cli/parley.ts'
import { until } from '../support/until.ts'

/** Processes of this demo, found by an unusual number of messages or by the file. */
function running(marks: readonly string[]): string[] {
  const all = execFileSync('ps', ['-A', '-o', 'args='], { encoding: 'utf8' }).split('\n')
  return all.filter(line => line.includes('cli.js') && marks.some(mark => line.includes(mark)))
}

const unusual = (which: number) => String(300 + which * 100 + (process.pid % 100))

test.each([
  ['SIGINT', 75],
  ['SIGKILL', null],
] as const)('a demo that %s ends leaves no process running', async (signal, expected) => {
  const cwd = emptyFolder()
  const messages = unusual(signal === 'SIGINT' ? 0 : 1)
  const demo = startParley(['demo', '--messages', messages], { cwd })
  await demo.says('parley backfill reads all of it into demo.db')
  expect(running([`--messages ${messages}`]).length).toBeGreaterThan(0)
  demo.child.kill(signal)
  const { status } = await demo.ended
  expect(status).toBe(expected)
  const left = () => running([`--messages ${messages}`, cwd])
  expect(await until(left, all => all.length === 0)).toEqual([])
})
