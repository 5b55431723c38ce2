import { readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { EXIT_STATUS } from '../../src/errors.ts'
import { emptyFolder, parley, startParley } from './parley.ts'
import { placeFor, silentApi, workspace } from './workspace.ts'

test.concurrent('status shows every resource, who wrote last and the size, and needs no API settings', async context => {
  const { cwd, env } = placeFor(await workspace(context, { securityOption: false }))
  await parley(['backfill'], { cwd, env })
  const { status, stdout, stderr } = await parley(['status'], { cwd })
  expect({ status, stderr }).toEqual({ status: EXIT_STATUS.done, stderr: '' })
  expect(stdout).toMatch(/^resource +state +rows +/)
  expect(stdout).toMatch(/\nteams +ok +2 /)
  expect(stdout).toMatch(/\naccess_logs +unavailable +0 /)
  expect(stdout).toMatch(/\n {2}access_logs: The API answers 403: /)
  expect(stdout).toMatch(/\nNo process writes it now\. The last was parley backfill, process \d+, begun /)
  expect(stdout).toMatch(/parley\.db: [\d.,]+ [kM]B, and /)
})

test.concurrent('status --json has the exact instants of sync_status and the sizes', async context => {
  const { cwd, env, file } = placeFor(await workspace(context))
  await parley(['backfill'], { cwd, env })
  const { stdout } = await parley(['status', '--json'], { cwd })
  const report = JSON.parse(stdout)
  expect(report).toMatchObject({
    database: file,
    database_bytes: expect.any(Number),
    wal_bytes: expect.any(Number),
    writer: { command: 'backfill', running: false, died: false },
    learned_rate: { was_refused: false },
  })
  expect(report.resources).toHaveLength(17)
  expect(report.resources).toContainEqual(
    expect.objectContaining({
      resource: 'messages',
      state: 'ok',
      newest_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    }),
  )
})

test.concurrent('status tells a writer that runs from one that was killed', async context => {
  const silent = await silentApi(context)
  const { cwd, env } = placeFor(silent)
  const running = startParley(['backfill'], { cwd, env })
  await silent.asked
  const during = await parley(['status'], { cwd })
  expect(during.status).toBe(EXIT_STATUS.done)
  expect(during.stdout).toContain(`\nWritten now by parley backfill, process ${running.child.pid}, since `)
  expect(during.stdout).toMatch(/\nmessages +backfilling +0 /)
  running.child.kill('SIGKILL')
  await running.ended
  const after = await parley(['status'], { cwd })
  expect(after.stdout).toMatch(
    new RegExp(
      `\\nNo process writes it: the last, parley backfill, process ${running.child.pid}, .* cut off`,
    ),
  )
})

test.concurrent('status leaves the folder as it was', async context => {
  const { cwd, env } = placeFor(await workspace(context))
  await parley(['backfill', '--only', 'teams'], { cwd, env })
  const before = readdirSync(cwd)
  await parley(['status'], { cwd })
  expect(readdirSync(cwd)).toEqual(before)
})

test.concurrent('without a warehouse status ends with 73, says how to make one, and makes none', async () => {
  const cwd = emptyFolder()
  for (const command of [['status'], ['status', '--json'], ['resync', 'teams']]) {
    const { status, stdout, stderr } = await parley(command, { cwd })
    expect({ status, stdout }).toEqual({ status: EXIT_STATUS.databaseUnavailable, stdout: '' })
    expect(stderr).toMatch(
      /^parley: There is no warehouse at .*parley\.db yet\nhint: parley backfill makes it /,
    )
  }
  expect(readdirSync(cwd)).toEqual([])
})
