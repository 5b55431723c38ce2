import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  accessSync,
  constants,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { loadSettings } from '../../src/config/load-settings.ts'
import { credentialName, environmentName, SECRETS, SETTING_LIST } from '../../src/config/settings.ts'
import { RESOURCE_STATES } from '../../src/dictionary/sync-tables.ts'
import { requirePrograms } from './tools.ts'
import { expand, FOLDER, readUnit } from './unit-file.ts'

const UNITS = readdirSync(FOLDER).filter(name => name.includes('@.'))
const SERVICES = UNITS.filter(name => name.endsWith('.service'))
const daemon = readUnit('parley@.service')
const snapshot = readUnit('parley-snapshot@.service')
const README = readFileSync(`${FOLDER}README.md`, 'utf8')

/** The daemon's program, which is only there once it is installed. */
const PROGRAM = '/opt/parley/dist/cli.js'

beforeAll(() => requirePrograms('systemd-analyze', 'systemd-sysusers'))

const newFolder = () => mkdtempSync(join(tmpdir(), 'parley-units-'))

const programsOf = (name: string) =>
  ['ExecStart', 'ExecReload']
    .flatMap(setting => readUnit(name).all(setting))
    .map(line => line.split(' ')[0] ?? '')

describe('the checks of systemd-analyze', () => {
  /** A machine on which all is installed that the units name. */
  function machine(): { root: string; units: string } {
    const root = newFolder()
    const units = join(root, 'etc/systemd/system')
    mkdirSync(units, { recursive: true })
    for (const name of UNITS) cpSync(join(FOLDER, name), join(units, name))
    for (const name of ['basic', 'multi-user', 'network-online', 'shutdown', 'sysinit', 'timers'])
      writeFileSync(join(units, `${name}.target`), '[Unit]\nDefaultDependencies=no\n')
    for (const program of SERVICES.flatMap(programsOf)) {
      mkdirSync(join(root, dirname(program)), { recursive: true })
      writeFileSync(join(root, program), '', { mode: 0o755 })
    }
    return { root, units }
  }

  function verify(root: string) {
    const names = UNITS.map(name => name.replace('@.', '@acme.'))
    const { status, stdout, stderr } = spawnSync(
      'systemd-analyze',
      ['verify', `--root=${root}`, '--man=no', '--recursive-errors=yes', ...names],
      { encoding: 'utf8' },
    )
    return { status, says: `${stdout}${stderr}` }
  }

  test('systemd-analyze finds no fault in the units', () => {
    expect(verify(machine().root)).toEqual({ status: 0, says: '' })
  })

  test.each(UNITS)('systemd-analyze would find a fault in %s', name => {
    const { root, units } = machine()
    const text = readFileSync(join(units, name), 'utf8')
    writeFileSync(join(units, name), text.replace(/^\[(Service|Timer)\]$/m, '$&\nMisspelt=yes'))
    const { status, says } = verify(root)
    expect(says).toContain("Unknown key 'Misspelt'")
    expect(status).not.toBe(0)
  })

  test.each(SERVICES)('systemd-analyze finds %s exposed by at most 1.5 of 10', name => {
    const { stdout, stderr } = spawnSync(
      'systemd-analyze',
      ['security', '--offline=true', '--no-pager', '--threshold=15', join(FOLDER, name)],
      { encoding: 'utf8' },
    )
    expect(stderr).toBe('')
    const [, exposure] = /Overall exposure level for \S+: (\d+\.\d)/.exec(stdout) ?? []
    expect(Number(exposure)).toBeLessThanOrEqual(1.5)
  })
})

describe('the content of the units', () => {
  const environment = Object.fromEntries(
    daemon.all('Environment').map(line => {
      const [name = '', ...value] = line.split('=')
      return [name, expand(value.join('='), { state: '/var/lib' })]
    }),
  )

  test('the units start the program of this package where the README installs it', () => {
    const { bin } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
    expect(PROGRAM).toBe(`/opt/parley/${bin.parley}`)
    expect(daemon.one('ExecStart')).toBe(`${PROGRAM} daemon`)
    expect(README).toMatch(/git clone \S+ \/opt\/parley\n/)
    expect(README).toContain(`ln -s ${PROGRAM} /usr/local/bin/parley\n`)
  })

  test.each(SERVICES.filter(name => programsOf(name).includes(PROGRAM)))(
    '%s gives Node no options that are set for all services, such as a debugger',
    name => {
      expect(readUnit(name).all('UnsetEnvironment')).toEqual(['NODE_OPTIONS'])
    },
  )

  test('a reload asks for no program that a small machine lacks, and sends SIGHUP', async () => {
    const script = /^\/bin\/sh -c '(.+)'$/.exec(daemon.one('ExecReload'))?.[1] ?? 'no shell'
    const target = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'])
    const ended = once(target, 'exit')
    const env = { PATH: newFolder(), MAINPID: String(target.pid) }
    const { status } = spawnSync('/bin/sh', ['-c', script], { env })
    if (status !== 0) target.kill()
    expect(await ended).toEqual([null, 'SIGHUP'])
  })

  test('the units use no other program that a machine might lack', () => {
    for (const program of SERVICES.flatMap(programsOf).filter(name => name !== PROGRAM))
      accessSync(program, constants.X_OK)
  })

  test('the units name existing settings and credentials', () => {
    const names = [...SETTING_LIST.map(([key]) => environmentName(key)), 'PARLEY_CONFIG']
    expect(Object.keys(environment).filter(name => !names.includes(name))).toEqual([])
    const credentials = daemon.all('LoadCredential').map(line => line.split(':')[0])
    const secrets = SECRETS.map(([key]) => credentialName(key))
    expect(credentials.filter(name => !secrets.includes(name ?? ''))).toEqual([])
  })

  test('the README names existing credentials', () => {
    const credentials = [...README.matchAll(/LoadCredential=(\w+):/g)].map(([, name]) => name ?? '')
    expect(credentials).toContain('publish_s3_secret_access_key')
    expect(SECRETS.map(([key]) => credentialName(key))).toEqual(expect.arrayContaining(credentials))
  })

  test('the units set allowed values, in the places that they create', () => {
    const config = join(newFolder(), 'acme.toml')
    writeFileSync(config, '[api]\nbase_url = "https://api.example.com"\nworkspace_id = "acme"\n')
    expect(environment['PARLEY_CONFIG']).toBe('/etc/parley/acme.toml')
    const { settings, warnings } = loadSettings({
      flags: {},
      env: { ...environment, PARLEY_CONFIG: config, PARLEY_API_KEY: 'demo-key' },
      cwd: '/',
      requireApi: true,
    })
    expect(warnings).toEqual([])
    expect(settings.database.path).toBe(
      `/var/lib/${expand(daemon.one('StateDirectory'), { state: '' })}/parley.db`,
    )
    expect(settings.database.mode).toBe(0o640)
    expect(settings.http.listen).toEqual({ at: 'socket', path: '/run/parley/acme.sock' })
    expect(daemon.one('RuntimeDirectory')).toBe('parley')
    expect(daemon.one('RuntimeDirectoryPreserve')).toBe('yes')
  })

  test('the units run as the user and the group that are created for them', () => {
    const root = newFolder()
    mkdirSync(join(root, 'etc/sysusers.d'), { recursive: true })
    cpSync(join(FOLDER, 'parley.conf'), join(root, 'etc/sysusers.d/parley.conf'))
    expect(spawnSync('systemd-sysusers', [`--root=${root}`]).status).toBe(0)
    const [name, , , gid] = (readFileSync(join(root, 'etc/passwd'), 'utf8').split('\n')[0] ?? '').split(':')
    const [group, , id] = (readFileSync(join(root, 'etc/group'), 'utf8').split('\n')[0] ?? '').split(':')
    expect(gid).toBe(id)
    for (const unit of [daemon, snapshot]) {
      expect([unit.one('User'), unit.one('Group')]).toEqual([name, group])
    }
  })

  test('the units are not restarted where only a person can help', () => {
    expect(daemon.one('Restart')).toBe('on-failure')
    expect(daemon.one('RestartPreventExitStatus')).toBe(`${EXIT_STATUS.refused} ${EXIT_STATUS.settings}`)
    expect(daemon.all('SuccessExitStatus')).toEqual([])
  })

  test('a unit that fails is reported by a unit that the README installs', () => {
    const report = 'parley-failed@.service'
    expect([daemon, snapshot].map(unit => unit.one('OnFailure'))).toEqual([
      'parley-failed@%n.service',
      'parley-failed@%n.service',
    ])
    expect(UNITS).toContain(report)
    const installs = [...README.matchAll(/^install .+ parley@\.service .+$/gm)].map(([line]) => line)
    expect(installs).not.toEqual([])
    expect(installs.filter(line => !line.includes(report))).toEqual([])
  })

  test.each([
    ['failed', true],
    ['active', true],
    ['activating', false],
  ])('a unit that is %s is reported: %s', (state, isReported) => {
    const condition = readUnit('parley-failed@.service').one('ExecCondition')
    const script = /^\+\/bin\/sh -c '(.+)'$/.exec(condition)?.[1] ?? 'no shell'
    const path = newFolder()
    writeFileSync(join(path, 'systemctl'), `#!/bin/sh\necho ${state}\n`, { mode: 0o755 })
    const { status } = spawnSync('/bin/sh', ['-c', script.replaceAll('$$', '$')], { env: { PATH: path } })
    expect(status).toBe(isReported ? 0 : 1)
  })

  test('the units leave the daemon time to end', () => {
    expect(Number.parseInt(daemon.one('TimeoutStopSec'), 10)).toBeGreaterThan(10)
  })

  test('a timer starts the snapshots', () => {
    expect(existsSync(join(FOLDER, 'parley-snapshot@.timer'))).toBe(true)
    expect(readUnit('parley-snapshot@.timer').one('OnCalendar')).toBe('daily')
  })
})

describe('the README of the units', () => {
  test.each(readdirSync(FOLDER).filter(name => name !== 'README.md'))(
    'the README says what %s is for',
    name => {
      expect(README).toContain(name)
    },
  )

  test.each(Object.entries(EXIT_STATUS))(
    'the README says what systemd does when parley ends as %s',
    (_, status) => {
      expect(README).toMatch(new RegExp(`^\\| [\\d, ]*\\b${status}\\b[\\d, ]*\\|`, 'm'))
    },
  )

  test.each(Object.keys(RESOURCE_STATES))('the README explains the state %s', state => {
    expect(README).toMatch(new RegExp(`^\\| \`${state}\` +\\|`, 'm'))
  })

  test('the README names only existing files of this folder', () => {
    const named = [...README.matchAll(/systemd\/([\w@.-]+\.\w+)/g)].map(([, name]) => name ?? '')
    expect(named.filter(name => !existsSync(join(FOLDER, basename(name))))).toEqual([])
  })
})
