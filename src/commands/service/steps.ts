import { devNull } from 'node:os'
import { dirname, join } from 'node:path'
import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import { shellWord } from '../../base/safe-text.ts'
import { loadSettings } from '../../config/load-settings.ts'
import type { SettingFlags } from '../../config/loaded-settings.ts'
import { settingNamed } from '../../config/settings.ts'

/** What the commands `parley service` find on the machine. */
export interface HostFacts {
  installation: string
  /** Whether a package installed the units and the user. */
  hasPackagedUnits: boolean
  /** Whether systemd runs. It does not run while the root folder of another machine is prepared. */
  isBooted: boolean
  hasSettings: boolean
  /** Whether the workspace has a service. */
  hasService: boolean
  /** Other workspaces that have a service. */
  others: readonly string[]
}

/** A command line, and what it does, described for people. */
export interface Step {
  does: string
  argv: readonly string[]
  /** Environment variables for the command. */
  env?: Readonly<Record<string, string>>
  /** Whether the standard output of the command is discarded. */
  isQuiet?: true
  /** What to do when the command fails, if its own message does not say so. */
  hint?: string
}

const UNITS = [
  'parley@.service',
  'parley-failed@.service',
  'parley-snapshot@.service',
  'parley-snapshot@.timer',
]
const UNIT_FOLDER = '/etc/systemd/system'
const INSTALLED_UNITS = UNITS.map(unit => join(UNIT_FOLDER, unit))

export const settingsPath = (name: string) => `/etc/parley/${name}.toml`
export const databasePath = (name: string) => `${dataFolder(name)}/parley.db`
const keyPath = (name: string) => `/etc/parley/${name}.key`
const dataFolder = (name: string) => `/var/lib/parley/${name}`
const unitsOf = (name: string) => [`parley@${name}.service`, `parley-snapshot@${name}.timer`]

/** systemd keeps a link here for each service that starts at boot. */
export const ENABLED_FOLDER = '/etc/systemd/system/multi-user.target.wants'

/** The workspaces that have a service, by name. @param entries the entries of `ENABLED_FOLDER` */
export function servicesIn(entries: readonly string[]): string[] {
  return entries.flatMap(entry => /^parley@(.+)\.service$/.exec(entry)?.[1] ?? []).sort()
}

/** The steps that systemd/README.md gives for a new workspace, with the same paths. */
export function* installSteps(
  name: string,
  { flags, keyFile }: { flags: readonly string[]; keyFile: string | undefined },
  { installation, hasPackagedUnits, isBooted, hasSettings }: HostFacts,
): Generator<Step> {
  const program = join(installation, 'dist', 'cli.js')
  const source = (file: string) => join(installation, 'systemd', file)
  const settings = settingsPath(name)
  if (!hasPackagedUnits) {
    yield {
      does: 'the user parley and the group parley-readers',
      argv: ['install', '-D', '-m', '644', '-t', '/etc/sysusers.d', source('parley.conf')],
    }
    yield { does: 'creates them', argv: ['systemd-sysusers', 'parley.conf'] }
    yield { does: 'the units', argv: ['install', '-m', '644', '-t', UNIT_FOLDER, ...UNITS.map(source)] }
    if (installation !== '/opt/parley')
      yield {
        does: 'with the folder of this program',
        argv: ['sed', '-i', `s#/opt/parley/#${installation}/#`, ...INSTALLED_UNITS],
      }
    if (isBooted) yield { does: 'makes them known', argv: ['systemctl', 'daemon-reload'] }
    yield {
      does: 'the user parley may run the program',
      argv: ['runuser', '-u', 'parley', '-g', 'parley-readers', '--', program, '--version'],
      isQuiet: true,
      hint: `After an installation with umask 077, let every user enter and read its folders: chmod go+rx ${shellWord(dirname(installation))}; chmod -R go+rX ${shellWord(installation)}`,
    }
  }
  if (keyFile !== undefined)
    yield {
      does: 'the API key, which only root can read; systemd passes it to the service',
      argv: ['install', '-D', '-m', '600', keyFile, keyPath(name)],
    }
  if (!hasSettings)
    yield {
      does: keyFile === undefined ? 'the settings and the API key' : 'the settings',
      argv: [program, 'init', '--no-try', '--config', settings, ...flags],
      isQuiet: true,
      ...(keyFile !== undefined && { env: { PARLEY_API_KEY_FILE: keyPath(name) } }),
    }
  yield { does: 'everyone may read the settings; the key stays private', argv: ['chmod', '644', settings] }
  yield {
    does: 'the folder of the warehouse',
    argv: ['install', '-d', '-o', 'parley', '-g', 'parley-readers', '-m', '750', dataFolder(name)],
  }
  yield {
    does: 'checks settings, key and API',
    argv: [program, 'doctor'],
    env: {
      PARLEY_CONFIG: settings,
      PARLEY_API_KEY_FILE: keyPath(name),
      PARLEY_DATABASE: databasePath(name),
      PARLEY_DATABASE_MODE: '0640',
      PARLEY_HTTP_LISTEN: 'off',
    },
    hint: `Mend what it says: the settings are in ${settings}, and the key is in ${keyPath(name)}`,
  }
  yield {
    does: `starts the service and its daily snapshot${isBooted ? ', now and' : ''} at each boot`,
    argv: ['systemctl', 'enable', ...(isBooted ? ['--now'] : []), ...unitsOf(name)],
  }
}

/** The reverse of `installSteps`. Settings, key, warehouse, snapshots, user and group stay. */
export function* uninstallSteps(
  name: string,
  { hasPackagedUnits, isBooted, others }: HostFacts,
): Generator<Step> {
  yield {
    does: 'stops the service and its daily snapshot',
    argv: ['systemctl', 'disable', ...(isBooted ? ['--now'] : []), ...unitsOf(name)],
  }
  if (hasPackagedUnits || others.length > 0) return
  yield {
    does: 'the units, which no other workspace uses',
    argv: ['rm', '-f', ...INSTALLED_UNITS, '/etc/sysusers.d/parley.conf'],
  }
  if (isBooted) yield { does: 'forgets them', argv: ['systemctl', 'daemon-reload'] }
}

/** @param status the exit status of the step; null when a signal ended it */
export function stepError({ argv: [command = '', ...args], hint }: Step, status: number | null): StopError {
  const isParley = command.endsWith('/dist/cli.js')
  const own = isParley ? Object.values(EXIT_STATUS).find(each => each === status) : undefined
  return new StopError(
    `${isParley ? `parley ${args[0]}` : command} failed, and the commands after it were not run`,
    {
      code: 'service-step-failed',
      hint: `${hint ?? 'Mend what it says'}. Then run parley service again: what is already done does no harm.`,
      exitStatus: own ?? EXIT_STATUS.settings,
    },
  )
}

/** The settings that `parley service install` takes as flags. */
const GIVEN_SETTINGS = ['api.base_url', 'api.workspace_id'] as const

/** Why the settings file, which install keeps, does not agree with the flags; undefined when it does. */
export function conflict(file: string, flags: SettingFlags): { message: string; hint: string } | undefined {
  const [kept, given] = [givenSettings({ config: file }), givenSettings({ ...flags, config: devNull })]
  const key = GIVEN_SETTINGS.find(each => given[each] !== undefined && given[each] !== kept[each])
  if (key === undefined) return undefined
  const present = kept[key] === undefined ? `no ${key}` : `${key} = ${JSON.stringify(kept[key])}`
  return {
    message: `${file} has ${present}, and ${settingNamed(key).flag} is ${JSON.stringify(given[key])}`,
    hint: `Settings that exist are kept. Correct the value in ${file} or in the command, and run the command again.`,
  }
}

function givenSettings(flags: SettingFlags) {
  const request = { flags, env: {}, cwd: '/', requireApi: false, used: GIVEN_SETTINGS }
  const { baseUrl, workspaceId } = loadSettings(request).settings.api
  return { 'api.base_url': baseUrl, 'api.workspace_id': workspaceId }
}

/** Why there is nothing to uninstall; undefined when there is. */
export function absence(
  name: string,
  { hasSettings, hasService, others }: HostFacts,
): { message: string; hint: string } | undefined {
  if (hasService || hasSettings) return undefined
  return {
    message: `There is no service parley@${name}.service, and no ${settingsPath(name)}`,
    hint:
      others.length === 0
        ? 'No workspace has a service on this machine.'
        : `The workspaces with a service are: ${others.join(', ')}.`,
  }
}

/** The commands that delete what `uninstallSteps` keeps, with the settings of its units (`systemctl edit`). */
export const commandsToDeleteData = (name: string): readonly string[] => [
  `rm -rf /etc/parley/${name}.* ${dataFolder(name)}`,
  `rm -rf ${UNIT_FOLDER}/parley@${name}.service.d ${UNIT_FOLDER}/parley-snapshot@${name}.service.d`,
  'systemctl daemon-reload',
]

/** The step as a person would type it. */
export function commandLine({ argv, env = {} }: Step): string {
  return [
    ...Object.entries(env).map(([name, value]) => `${name}=${shellWord(value)}`),
    ...argv.map(shellWord),
  ].join(' ')
}

/** Why a service of this program could not run, with what to do; undefined when the service could run. */
export function obstacle(
  name: string,
  {
    platform,
    isRoot,
    installation,
    hasSystemd,
    node,
  }: {
    platform: string
    isRoot: boolean
    installation: string
    hasSystemd: boolean
    /** Where services find `node`; undefined when services do not find it. */
    node: string | undefined
  },
): { message: string; hint: string } | undefined {
  if (!/^[A-Za-z0-9_-]+$/.test(name))
    return {
      message: `${JSON.stringify(name)} cannot be the name of a service`,
      hint: 'Use letters, digits, - and _: the units and files of the workspace have this name.',
    }
  if (platform !== 'linux' || !hasSystemd)
    return {
      message: 'There is no systemd on this machine',
      hint: 'Let another program start parley daemon, or cron run parley backfill.',
    }
  if (!isRoot) return { message: 'Only root can install services', hint: 'Run the command with sudo.' }
  if (!/^[\w@+./-]+$/.test(installation))
    return {
      message: `parley is installed in ${installation}, a path that units of systemd cannot have`,
      hint: 'Move it to a folder whose path has letters, digits and . _ - + @ only.',
    }
  if (/^\/(home|root|run\/user)\//.test(installation))
    return {
      message: `parley is installed in ${installation}, which services cannot see`,
      hint: 'Install it for all users: with the Debian package, or by npm install -g with a Node of /usr or /usr/local.',
    }
  if (node === undefined)
    return {
      message: 'Services find no node on their search path',
      hint: 'Install Node in /usr or /usr/local, or link it: ln -s "$(command -v node)" /usr/local/bin/node.',
    }
  return undefined
}
