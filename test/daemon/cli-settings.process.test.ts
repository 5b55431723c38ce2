import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, type TestContext, test } from 'vitest'
import { type Place, placeFor, workspace } from '../cli/workspace.ts'
import { until } from '../support/until.ts'
import { type DaemonProcess, loaded, runCommand, seen, startDaemon } from './cli-daemon.ts'

const NEVER = 'poll_seconds = 86400'

/** A daemon that has read everything, polls once a day, and has its settings in a file. */
async function settled(context: TestContext) {
  const simulator = await workspace(context)
  const place = placeFor(simulator)
  const config = (text: string) => writeFileSync(join(place.cwd, 'parley.toml'), text)
  config(`[sync]\n${NEVER}\n`)
  const daemon = startDaemon(context, place, {
    PARLEY_CONFIG: 'parley.toml',
    PARLEY_SYNC_POLL_SECONDS: '',
    PARLEY_HTTP_NUDGE_SECRET: '',
  })
  await loaded(place.file)
  const publish = () => simulator.apply({ kind: 'publish', resource: 'messages' }).ids[0] ?? ''
  return { place, config, daemon, publish }
}

const stored = ({ file }: Place, id: string) =>
  seen(file, id, 'SELECT id FROM message_copies WHERE id = ?', id)

const changes = (daemon: DaemonProcess) =>
  daemon
    .lines()
    .filter(({ msg }) => msg.startsWith('A setting has changed; it '))
    .map(({ setting, msg }) => [setting, msg.slice('A setting has changed; it '.length)])

test('after SIGHUP the daemon names the settings that have changed, with their values, and applies them', async context => {
  const { place, config, daemon, publish } = await settled(context)
  const id = publish()
  config(
    '[sync]\npoll_seconds = 1\n[http]\nnudge_secret = "a-long-enough-secret"\n[transcripts]\nwords = false\n',
  )
  daemon.signal('SIGHUP')
  expect(await stored(place, id)).toBe(id)
  expect(changes(daemon)).toEqual(
    expect.arrayContaining([
      ['sync.poll_seconds', 'takes effect now'],
      ['transcripts.words', 'takes effect now'],
      ['http.nudge_secret', 'takes effect after a restart'],
    ]),
  )
  expect(changes(daemon)).toHaveLength(3)
  expect(daemon.lines()).toContainEqual(
    expect.objectContaining({ setting: 'sync.poll_seconds', before: '86400', after: '1' }),
  )
  expect(JSON.stringify(daemon.lines())).not.toContain('a-long-enough-secret')
})

test('a setting that needs a restart is compared with its value in effect, and one set back to it needs none', async context => {
  const place = placeFor(await workspace(context))
  const config = (listen: string, secret: string) =>
    writeFileSync(
      join(place.cwd, 'parley.toml'),
      `[http]\nlisten = "${listen}"\nnudge_secret = "${secret}"\n`,
    )
  config('127.0.0.1:0', 'a-long-enough-secret')
  const daemon = startDaemon(context, place, {
    PARLEY_CONFIG: 'parley.toml',
    PARLEY_HTTP_LISTEN: '',
    PARLEY_HTTP_NUDGE_SECRET: '',
  })
  await loaded(place.file)
  const reload = async (listen: string, secret: string) => {
    const before = daemon.lines().length
    config(listen, secret)
    daemon.signal('SIGHUP')
    const told = () =>
      daemon
        .lines()
        .slice(before)
        .filter(({ msg }) => msg.startsWith('A setting '))
    return until(told, found => found.length === 2)
  }
  const LATER = 'A setting has changed; it takes effect after a restart'
  const BACK = 'A setting is back at its value in effect; no restart is needed'
  const before = '127.0.0.1:0'
  expect(await reload('off', 'another-long-secret')).toMatchObject([
    { msg: LATER, setting: 'http.listen', before, after: 'off' },
    { msg: LATER, setting: 'http.nudge_secret' },
  ])
  expect(await reload('127.0.0.1:1', 'a-third-long-secret')).toMatchObject([
    { msg: LATER, setting: 'http.listen', before, after: '127.0.0.1:1' },
    { msg: LATER, setting: 'http.nudge_secret' },
  ])
  expect(await reload('127.0.0.1:0', 'a-long-enough-secret')).toMatchObject([
    { msg: BACK, setting: 'http.listen', after: before },
    { msg: BACK, setting: 'http.nudge_secret' },
  ])
  expect(JSON.stringify(daemon.lines())).not.toMatch(/long-(enough-)?secret/)
})

test('after SIGHUP without a change the daemon says that nothing has changed', async context => {
  const { daemon } = await settled(context)
  daemon.signal('SIGHUP')
  await daemon.says(({ msg }) => msg === 'The settings were reloaded; none has changed')
  expect(changes(daemon)).toEqual([])
})

test.for([
  ['a value out of range', '[sync]\npoll_seconds = 0\n', 'sync.poll_seconds'],
  ['an unknown key', `[sync]\n${NEVER}\npol_seconds = 1\n`, 'pol_seconds'],
  ['a file that is no TOML', '[sync\n', 'parley.toml'],
] as const)('SIGHUP with %s keeps the old settings and says why', async ([, text, named], context) => {
  const { place, config, daemon, publish } = await settled(context)
  config(text)
  daemon.signal('SIGHUP')
  const line = await daemon.says(({ msg }) => msg.endsWith('the daemon keeps the current ones'))
  expect(line.level).toBe('error')
  expect(line.error?.message).toContain(named)
  expect(changes(daemon)).toEqual([])
  const check = async () => (await runCommand(place, ['status', '--check'])).stdout
  const metrics = async () => (await daemon.ask('/metrics')).body
  const isWarned = /^WARNING: .*The new settings are invalid/
  expect(await until(check, line => isWarned.test(line))).toContain(named)
  expect(await until(metrics, text => text.includes('parley_settings_invalid 1'))).toContain(
    'parley_settings_invalid 1',
  )
  // The daemon still runs, and applies the corrected file.
  const id = publish()
  config('[sync]\npoll_seconds = 1\n')
  daemon.signal('SIGHUP')
  expect(await stored(place, id)).toBe(id)
  expect(await check()).not.toMatch(/settings/)
  expect(await until(metrics, text => text.includes('parley_settings_invalid 0'))).toContain(
    'parley_settings_invalid 0',
  )
})

test('SIGUSR1 does not open the debugger of Node, and the log says that it was ignored', async context => {
  const { daemon } = await settled(context)
  daemon.signal('SIGUSR1')
  const line = await daemon.says(({ msg }) => msg.startsWith('SIGUSR1 was ignored'))
  expect(line.level).toBe('info')
  expect(JSON.stringify(daemon.lines())).not.toContain('Debugger listening')
})
