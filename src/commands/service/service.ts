import { type StdioOptions, spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Argument, Option } from 'commander'
import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import { INSTALLATION } from '../../base/installation.ts'
import type { CommandContext, CommandDefinition } from '../base/command.ts'
import {
  absence,
  commandLine,
  commandsToDeleteData,
  conflict,
  databasePath,
  ENABLED_FOLDER,
  type HostFacts,
  installSteps,
  obstacle,
  type Step,
  servicesIn,
  settingsPath,
  stepError,
  uninstallSteps,
} from './steps.ts'

interface InstallOptions {
  plan?: true
  baseUrl?: string
  workspaceId?: string
  apiKeyFile?: string
}

const NAME = new Argument('<name>', 'a name for the workspace: letters, digits, - and _')
const PLAN = new Option('--plan', 'only print the commands')

export const serviceInstallCommand: CommandDefinition<InstallOptions> = {
  description:
    'Installs a systemd service that keeps one workspace in sync, with a daily snapshot, and starts it. Prints the commands of systemd/README.md and runs them. Settings that exist are kept, and flags that differ from them are refused. Needs root.',
  arguments: [NAME],
  settings: [],
  options: [
    new Option('--base-url <url>', 'the address of the API, without /v1 and /v2'),
    new Option('--workspace-id <id>', 'the id of the workspace to read'),
    new Option('--api-key-file <file>', 'a file with the API key, which is copied; without it you are asked'),
    PLAN,
  ],
  examples: [
    [
      'parley service install acme --base-url https://api.example.com --workspace-id 42',
      'asks for the API key',
    ],
    ['parley service install acme --plan', 'only prints the commands'],
  ],
  async run(context, { args: [name = ''], options }) {
    const { baseUrl, workspaceId, apiKeyFile } = options
    const given = {
      flags: [
        ...(baseUrl === undefined ? [] : ['--base-url', baseUrl]),
        ...(workspaceId === undefined ? [] : ['--workspace-id', workspaceId]),
      ],
      keyFile: apiKeyFile && resolve(context.cwd, apiKeyFile),
    }
    refuseObstacle(name, options)
    const machine = machineFor(name)
    const wrong = machine.hasSettings
      ? conflict(settingsPath(name), { 'api.base_url': baseUrl, 'api.workspace_id': workspaceId })
      : undefined
    if (wrong !== undefined) throw refusal(wrong)
    runSteps(context, installSteps(name, given, machine), options)
    if (options.plan) return EXIT_STATUS.done
    const next = [`parley status --database ${databasePath(name)}`, `journalctl -u parley@${name} -f`]
    context.stdout.write(`\nInstalled parley@${name}.service. Next:\n${indented(next)}`)
    return EXIT_STATUS.done
  },
}

export const serviceUninstallCommand: CommandDefinition<InstallOptions> = {
  description:
    'Stops the service of a workspace and removes it. Settings, key, warehouse and snapshots stay. Prints the commands and runs them. Needs root.',
  arguments: [NAME],
  settings: [],
  options: [PLAN],
  examples: [['parley service uninstall acme', 'stops and removes the service']],
  async run(context, { args: [name = ''], options }) {
    refuseObstacle(name, options)
    const machine = machineFor(name)
    const wrong = absence(name, machine)
    if (wrong !== undefined) throw refusal(wrong)
    runSteps(context, uninstallSteps(name, machine), options)
    if (options.plan) return EXIT_STATUS.done
    context.stdout.write(
      `\nThe settings, the key and the warehouse are still there. To delete them as well:\n${indented(commandsToDeleteData(name))}`,
    )
    return EXIT_STATUS.done
  },
}

const indented = (lines: readonly string[]) => lines.map(line => `  ${line}\n`).join('')

/** The search path of systemd's services. */
const SERVICE_PATH = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin']

function machineFor(name: string): HostFacts {
  const services = servicesIn(existsSync(ENABLED_FOLDER) ? readdirSync(ENABLED_FOLDER) : [])
  return {
    installation: INSTALLATION,
    hasPackagedUnits: existsSync('/usr/lib/systemd/system/parley@.service'),
    isBooted: existsSync('/run/systemd/system'),
    hasSettings: existsSync(settingsPath(name)),
    hasService: services.includes(name),
    others: services.filter(other => other !== name),
  }
}

/** @throws StopError when a service of this program could not run; a plan needs no root */
function refuseObstacle(name: string, { plan = false }: { plan?: boolean }): void {
  const wrong = obstacle(name, {
    platform: process.platform,
    isRoot: plan || process.geteuid?.() === 0,
    installation: INSTALLATION,
    hasSystemd: existsSync('/usr/bin/systemctl'),
    node: SERVICE_PATH.find(folder => existsSync(join(folder, 'node'))),
  })
  if (wrong !== undefined) throw refusal(wrong)
}

const refusal = ({ message, hint }: { message: string; hint: string }) =>
  new StopError(message, { code: 'no-service', hint, exitStatus: EXIT_STATUS.usage })

/**
 * Prints each step and runs it, unless only the plan is wanted.
 * @throws StopError when a step fails; the rest is not run
 */
function runSteps(
  { stdout, env }: CommandContext,
  steps: Iterable<Step>,
  { plan = false }: { plan?: boolean },
): void {
  for (const step of steps) {
    stdout.write(`# ${step.does}\n${commandLine(step)}\n`)
    if (plan) continue
    const [command = '', ...args] = step.argv
    const stdio: StdioOptions = ['inherit', step.isQuiet ? 'ignore' : 'inherit', 'inherit']
    const { status } = spawnSync(command, args, { stdio, env: { ...env, ...step.env }, cwd: '/' })
    if (status !== 0) throw stepError(step, status)
  }
}
