import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import {
  absence,
  commandLine,
  commandsToDeleteData,
  conflict,
  type HostFacts,
  installSteps,
  obstacle,
  stepError,
  uninstallSteps,
} from '../../src/commands/service/steps.ts'
import { emptyFolder, parley } from './parley.ts'

const MACHINE: HostFacts = {
  installation: '/opt/parley',
  hasPackagedUnits: false,
  isBooted: true,
  hasSettings: false,
  hasService: false,
  others: [],
}
const GIVEN = { flags: ['--workspace-id', "o'42"], keyFile: undefined }

const install = (machine: Partial<HostFacts>, given: Parameters<typeof installSteps>[1] = GIVEN) =>
  [...installSteps('acme', given, { ...MACHINE, ...machine })].map(commandLine)
const uninstall = (machine: Partial<HostFacts>) =>
  [...uninstallSteps('acme', { ...MACHINE, ...machine })].map(commandLine)

test('a service is installed by the commands of the page, in their order', () => {
  expect(
    install({}).map(line =>
      line
        .replace(/^(\S+=\S+ )+/, '')
        .split(' ')
        .slice(0, 2)
        .join(' '),
    ),
  ).toEqual([
    'install -D',
    'systemd-sysusers parley.conf',
    'install -m',
    'systemctl daemon-reload',
    'runuser -u',
    '/opt/parley/dist/cli.js init',
    'chmod 644',
    'install -d',
    '/opt/parley/dist/cli.js doctor',
    'systemctl enable',
  ])
})

test.for<[what: string, line: string, isThere: boolean, machine: Partial<HostFacts>]>([
  [
    'names the folder of the program in the units',
    "sed -i 's#/opt/parley/#/usr/lib/x/#' ",
    true,
    { installation: '/usr/lib/x' },
  ],
  ['leaves the units of a package alone', '/etc/systemd/system', false, { hasPackagedUnits: true }],
  ['quotes what it was given for a shell', "--workspace-id 'o'\\''42'", true, {}],
  ['keeps settings that exist', 'cli.js init', false, { hasSettings: true }],
  [
    'starts the service at once',
    'systemctl enable --now parley@acme.service parley-snapshot@acme.timer',
    true,
    {},
  ],
  [
    'waits for the next boot where systemd does not run',
    'systemctl enable parley@acme.service',
    true,
    { isBooted: false },
  ],
  ['asks a systemd that does not run for nothing', 'daemon-reload', false, { isBooted: false }],
])('install %s', ([, line, isThere, machine]) => {
  expect(install(machine).some(each => each.includes(line))).toBe(isThere)
})

test('a key in a file is copied for root alone, and init does not ask for it', () => {
  const lines = install({}, { flags: [], keyFile: '/home/me/key' })
  expect(lines).toContain('install -D -m 600 /home/me/key /etc/parley/acme.key')
  expect(lines).toContain(
    'PARLEY_API_KEY_FILE=/etc/parley/acme.key /opt/parley/dist/cli.js init --no-try --config /etc/parley/acme.toml',
  )
})

test.for<[what: string, machine: Partial<HostFacts>, removesUnits: boolean]>([
  ['of the last workspace', {}, true],
  ['that another workspace uses', { others: ['parley@other.service'] }, false],
  ['of a package', { hasPackagedUnits: true }, false],
])('uninstall stops the service and removes units %s: %#', ([, machine, removesUnits]) => {
  const lines = uninstall(machine)
  expect(lines[0]).toBe('systemctl disable --now parley@acme.service parley-snapshot@acme.timer')
  expect(lines.some(line => line.startsWith('rm '))).toBe(removesUnits)
  expect(lines.join('\n')).not.toMatch(/\/var\/lib|\/etc\/parley/)
})

test.for<[what: string, facts: Partial<HostFacts>, hint: RegExp | undefined]>([
  ['without a service and settings is refused', {}, /No workspace has a service/],
  ['that has another name is refused', { others: ['acme2'] }, /are: acme2\./],
  ['with a service is accepted', { hasService: true }, undefined],
  ['with settings, as after a first uninstall, is accepted', { hasSettings: true }, undefined],
])('to uninstall a workspace %s', ([, facts, hint]) => {
  const found = absence('acme', { ...MACHINE, ...facts })
  if (hint === undefined) expect(found).toBeUndefined()
  else expect(found?.hint).toMatch(hint)
})

test('to uninstall a service that is not there is an error of usage, and prints no command', async () => {
  const { status, stdout, stderr } = await parley(['service', 'uninstall', 'none-of-this-name', '--plan'])
  expect({ status, stdout }).toEqual({ status: EXIT_STATUS.usage, stdout: '' })
  expect(stderr).toContain('There is no service parley@none-of-this-name.service')
})

test('the lines that delete a workspace are those of the page', () => {
  const page = readFileSync(new URL('../../systemd/README.md', import.meta.url), 'utf8')
  const section = page.split('## Remove one workspace\n')[1] ?? ''
  expect(section).toContain(`\n${commandsToDeleteData('acme').join('\n')}\n`)
})

const FIT = {
  platform: 'linux',
  isRoot: true,
  installation: '/opt/parley',
  hasSystemd: true,
  node: '/usr/bin',
}

test.for<[message: RegExp | undefined, name: string, facts: Partial<typeof FIT> | { node: undefined }]>([
  [undefined, 'acme-2', {}],
  [/cannot be the name/, 'a b', {}],
  [/cannot be the name/, '../etc', {}],
  [/no systemd/, 'acme', { platform: 'darwin' }],
  [/no systemd/, 'acme', { hasSystemd: false }],
  [/Only root/, 'acme', { isRoot: false }],
  [/services cannot see/, 'acme', { installation: '/home/me/lib/node_modules/parleyd' }],
  [/services cannot see/, 'acme', { installation: '/root/parley' }],
  [/a path that units of systemd cannot have/, 'acme', { installation: '/srv/a & b' }],
  [/find no node/, 'acme', { node: undefined }],
])('what keeps a service from running is said first: %s', ([message, name, facts]) => {
  const found = obstacle(name, { ...FIT, ...facts })
  if (message === undefined) expect(found).toBeUndefined()
  else expect(found?.message).toMatch(message)
})

test.for<[what: string, message: RegExp | undefined, url: string | undefined, id: string | undefined]>([
  ['the same values are accepted', undefined, 'https://api.example.com/', '42'],
  ['values that are not given are accepted', undefined, undefined, undefined],
  [
    'another workspace is refused',
    /acme\.toml has api\.workspace_id = "42", and --workspace-id is "43"/,
    undefined,
    '43',
  ],
  [
    'another address is refused',
    /has api\.base_url = "https:\/\/api\.example\.com", and --base-url is/,
    'https://b.example.com',
    '42',
  ],
])('of flags for settings that exist, %s', ([, message, baseUrl, workspaceId]) => {
  const file = join(emptyFolder(), 'acme.toml')
  writeFileSync(file, '[api]\nbase_url = "https://api.example.com"\nworkspace_id = "42"\n')
  const found = conflict(file, { 'api.base_url': baseUrl, 'api.workspace_id': workspaceId })
  if (message === undefined) expect(found).toBeUndefined()
  else expect(found).toEqual({ message: expect.stringMatching(message), hint: expect.stringContaining(file) })
})

test('a flag for a setting that the file lacks is refused', () => {
  const file = join(emptyFolder(), 'acme.toml')
  writeFileSync(file, '[api]\n')
  expect(conflict(file, { 'api.workspace_id': '42' })?.message).toContain('has no api.workspace_id')
})

test.for<[argv: string, status: number | null, message: RegExp, exitStatus: number]>([
  ['/opt/parley/dist/cli.js doctor', EXIT_STATUS.refused, /^parley doctor failed/, EXIT_STATUS.refused],
  ['/opt/parley/dist/cli.js doctor', null, /^parley doctor failed/, EXIT_STATUS.settings],
  ['systemctl enable', 1, /^systemctl failed/, EXIT_STATUS.settings],
])(
  'a failed step is named, and a command of parley gives its status: %s, %s',
  ([line, status, message, exitStatus]) => {
    const error = stepError({ does: '', argv: line.split(' ') }, status)
    expect(error.message).toMatch(message)
    expect(error.exitStatus).toBe(exitStatus)
  },
)

test('a check that fails names the files to correct', () => {
  const steps = [...installSteps('acme', GIVEN, MACHINE)]
  const hint = steps.find(({ argv }) => argv[1] === 'doctor')?.hint
  expect(hint).toMatch(/\/etc\/parley\/acme\.toml.*\/etc\/parley\/acme\.key/)
})

test('a plan prints the commands and runs none', async () => {
  const cwd = emptyFolder()
  const { status, stdout } = await parley(['service', 'install', 'acme', '--plan'], { cwd })
  expect(status).toBe(EXIT_STATUS.done)
  expect(stdout).toContain('systemctl enable')
  expect(readdirSync(cwd)).toEqual([])
})
