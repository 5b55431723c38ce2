import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { EXIT_STATUS } from '../../src/base/errors.ts'

const SIMULATE = new URL('simulate.ts', import.meta.url).pathname

test('npm run simulate refuses a seed that is no number in one sentence', () => {
  const argv = ['--import', 'tsx', SIMULATE, '--seed', 'x']
  const { status, stderr } = spawnSync(process.execPath, argv, { encoding: 'utf8' })
  expect([status, stderr]).toEqual([EXIT_STATUS.usage, '--seed is x: expected a whole number\n'])
})
