import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { backfillCommand } from '../../src/commands/backfill/backfill.ts'
import { daemonCommand } from '../../src/commands/daemon.ts'
import { publishCommand } from '../../src/commands/publish.ts'
import { SETTING_LIST } from '../../src/config/settings.ts'
import { openAt } from '../store/temporary-store.ts'
import { emptyFolder, parley, parleyProcess } from './parley.ts'

test('all wrong flags are reported at once, without a stack', async () => {
  const { status, stdout, stderr } = await parley(
    'init --max-concurrency many --since soon --only robots --publish-tables robots'.split(' '),
  )
  expect({ status, stdout }).toEqual({ status: EXIT_STATUS.settings, stdout: '' })
  expect(stderr.split('\n')).toEqual([
    'parley: Invalid settings, 4 problems:',
    expect.stringMatching(/^ {2}api\.max_concurrency is "many" in flag --max-concurrency: expected /),
    expect.stringMatching(/^ {2}sync\.since is "soon" in flag --since: expected /),
    expect.stringMatching(
      /^ {2}sync\.resources is \["robots"\] in flag --only: there is no resource "robots"; expected /,
    ),
    '  publish.tables is ["robots"] in flag --publish-tables: there is no table "robots"',
    'hint: config/README.md explains every setting.',
    '',
  ])
})

test.each([emptyFolder(), '/'])(
  'away from the installation, in %s, the hint names the settings page by its full path',
  async cwd => {
    const { stderr } = await parleyProcess(['backfill', '--max-concurrency', 'many'], { cwd })
    const [, page = ''] = /^hint: (.*) explains every setting\.$/m.exec(stderr) ?? []
    expect(page).toMatch(/^\/.*\/config\/README\.md$/)
    expect(existsSync(page)).toBe(true)
  },
)

test.for([
  'backfill',
  'daemon',
  'doctor',
  'export parquet out',
  'publish out',
  'publish',
  'resync members',
  'snapshot copy.db',
])('%s reports unknown names in the settings together with what else is wrong', async line => {
  const cwd = emptyFolder()
  writeFileSync(join(cwd, 'names.toml'), '[sync]\npoll_seconds = 0\nresources = ["robots"]\n')
  const { stdout, stderr, status } = await parley([...line.split(' '), '--config', 'names.toml'], { cwd })
  expect(status).toBe(EXIT_STATUS.settings)
  const said = `${stdout}${stderr}`
  expect(said).toContain('sync.poll_seconds is 0')
  expect(said).toContain('there is no resource "robots"')
})

test('a snapshot schedule that never occurs is refused with the setting, the value and what was expected', async () => {
  const { status, stderr } = await parley(['init', '--snapshot-every', '0 0 30 2 *'])
  expect(status).toBe(EXIT_STATUS.settings)
  expect(stderr).toMatch(
    /^parley: Invalid settings: snapshot\.every is "0 0 30 2 \*" in flag --snapshot-every: expected hourly, daily, weekly, or a cron pattern .* that matches at least one date/,
  )
})

test('no flag takes the key itself', async () => {
  for (const flag of ['--key', '--api-key']) {
    const { status, stderr } = await parley(['init', flag, 'hush'])
    expect(status).toBe(EXIT_STATUS.usage)
    expect(stderr).not.toContain('hush')
  }
})

test('the daemon takes the flag of every setting, and other commands those of theirs', () => {
  const flagged = SETTING_LIST.filter(([, { flag }]) => flag !== undefined).map(([key]) => key)
  expect(flagged.filter(key => !daemonCommand.settings.includes(key))).toEqual([])
  expect(publishCommand.settings).toContain('publish.s3_secret_access_key')
  expect(backfillCommand.settings).toEqual(
    expect.arrayContaining(['transcripts.words', 'search.enabled', 'crm.tables']),
  )
})

test('a request to reload that comes before the settings are read does not end the daemon', async () => {
  const signals: string[] = []
  const { stdin, stdout } = process
  const onSignal = (name: string) => void signals.push(name)
  const signal = new AbortController().signal
  const context = {
    env: {},
    cwd: emptyFolder(),
    stdin,
    stdout,
    stderr: stdout,
    signal,
    onSignal,
    version: '1',
  }
  const running = daemonCommand.run(context, { args: [], flags: {}, options: {} })
  expect(signals).toEqual(['SIGHUP'])
  await expect(running).rejects.toMatchObject({ exitStatus: EXIT_STATUS.settings })
})

test.for([['status'], ['search', 'word'], ['schema'], ['report']])(
  '%s only warns about wrong settings that it does not use',
  async args => {
    const cwd = emptyFolder()
    openAt(join(cwd, 'parley.db')).close()
    const env = { PARLEY_SYNC_POLL_SECONDS: 'often', PARLEY_SYNC_RESOURCES: 'robots' }
    const { status, stderr } = await parley(args, { cwd, env })
    expect({ args, status }).toEqual({ args, status: EXIT_STATUS.done })
    expect(stderr).toMatch(/^parley: Warning: sync\.poll_seconds is "often" in environment/m)
    expect(stderr).toMatch(/^parley: Warning: sync\.resources is \["robots"\] in environment/m)
  },
)
