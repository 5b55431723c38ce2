import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { environmentName, fileEnvironmentName, SECRETS } from '../../src/config/settings.ts'
import { emptyFolder } from '../cli/parley.ts'
import { isRunning } from '../support/is-running.ts'
import { until } from '../support/until.ts'
import { DISK, watchTrial } from './watch-trial.ts'

const textOf = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8') : '')

/** Waits until a command has written its last line. */
const written = (file: string) =>
  until(
    () => textOf(file),
    text => text.endsWith('end\n'),
  )

test('a command gets the call as one JSON line on its input and as environment variables', async () => {
  const file = join(emptyFolder(), 'out')
  const { look, lines } = await watchTrial({
    onProblem: `{ cat; env | sort; echo end; } > '${file}'; echo noise; echo noise >&2`,
    env: { PATH: process.env['PATH'], OTHER: 'kept' },
  })
  await look([DISK])
  const [json = '', ...variables] = (await written(file)).split('\n')
  const text =
    'parley, workspace acme: The daemon cannot use the database (since 11:59:00 UTC). The disk is full. Remove the cause.'
  expect(JSON.parse(json)).toMatchObject({ event: 'problem', id: DISK.id, text, workspace: 'acme' })
  expect(variables).toEqual(
    expect.arrayContaining([
      'OTHER=kept',
      'PARLEY_EVENT=problem',
      `PARLEY_PROBLEM_ID=${DISK.id}`,
      'PARLEY_PROBLEM_SECONDS=90',
      `PARLEY_PROBLEM_SINCE=${DISK.since}`,
      `PARLEY_PROBLEM_TODO=${DISK.todo}`,
      `PARLEY_PROBLEM_WHAT=${DISK.what}`,
      `PARLEY_TEXT=${text}`,
      'PARLEY_WORKSPACE_ID=acme',
    ]),
  )
  await until(
    () => lines.length,
    count => count === 1,
  )
  expect(lines).toMatchObject([
    { level: 'info', msg: 'Called a hook', setting: 'hooks.on_problem', problem: DISK.id },
  ])
})

test('a command gets no secret of parley and no way to speak to systemd for it', async () => {
  const file = join(emptyFolder(), 'out')
  const names = SECRETS.flatMap(([key]) => [environmentName(key), fileEnvironmentName(key)])
  const secrets = Object.fromEntries(names.map(name => [name, 'a-secret']))
  const { look } = await watchTrial({
    onProblem: `{ env; echo end; } > '${file}'`,
    env: { ...secrets, CREDENTIALS_DIRECTORY: '/run/a-secret', NOTIFY_SOCKET: '/run/a-secret' },
  })
  await look([DISK])
  const text = await written(file)
  expect(text).toContain('PARLEY_EVENT=problem\n')
  expect(text).not.toMatch(/a-secret|API_KEY|HOOKS/)
})

test('a command that hangs is killed with its children after thirty seconds', async () => {
  const file = join(emptyFolder(), 'out')
  const { look, lines, clock } = await watchTrial({
    onProblem: `sleep 1000 & { echo $$; echo $!; echo end; } > '${file}'; wait`,
    env: { PATH: process.env['PATH'] },
  })
  await look([DISK])
  const pids = (await written(file)).split('\n').slice(0, 2).map(Number)
  expect(pids.map(isRunning)).toEqual([true, true])
  await clock.advance(29_999)
  expect(lines).toEqual([])
  await clock.advance(1)
  const alive = await until(
    () => pids.filter(isRunning),
    left => left.length === 0,
  )
  expect(alive).toEqual([])
  await until(
    () => lines.length,
    count => count === 1,
  )
  expect(lines).toMatchObject([{ setting: 'hooks.on_problem', reason: 'it did not end within 30 s' }])
})

test('a watch that is closed kills a command that hangs', async () => {
  const file = join(emptyFolder(), 'out')
  const { look, watch, clock } = await watchTrial({
    onProblem: `{ echo $$; echo end; } > '${file}'; sleep 1000`,
    env: { PATH: process.env['PATH'] },
  })
  await look([DISK])
  const pid = Number((await written(file)).split('\n')[0])
  const closed = watch.close()
  await clock.advance(1000)
  await closed
  expect(isRunning(pid)).toBe(false)
})

test.each([
  ['exit 3', 'exit status 3'],
  ['kill -TERM $$', 'signal SIGTERM'],
  ['no-such-program', 'exit status 127'],
])('the command %j fails with %s, and the log does not show it', async (command, reason) => {
  const { look, lines } = await watchTrial({ onProblem: `: T0KEN; ${command}` })
  await look([DISK])
  await until(
    () => lines.length,
    count => count === 1,
  )
  expect(lines).toMatchObject([{ setting: 'hooks.on_problem', reason }])
  expect(JSON.stringify(lines)).not.toMatch(/T0KEN|no-such-program/)
})

test('a command that does not read its input succeeds', async () => {
  const file = join(emptyFolder(), 'out')
  const { look, lines, clock } = await watchTrial({ onProblem: `exec <&-; echo end > '${file}'` })
  await look([{ ...DISK, what: 'x'.repeat(100_000) }])
  await written(file)
  await until(
    () => lines.length,
    count => count === 1,
  )
  await clock.advance(3_600_000)
  expect(lines).toMatchObject([{ msg: 'Called a hook' }])
})
