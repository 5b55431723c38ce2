import { EXIT_STATUS } from '../errors.ts'
import { RESOURCE_NAMES } from '../resource.ts'
import { type CommandDefinition, mayColour, settingsFor, settingsIn } from './command.ts'

export const daemonCommand: CommandDefinition = {
  description:
    'Keeps the warehouse equal to what the API publishes, for as long as it runs: new things within a poll, late ones, edits and deletions within the interval for their age. It begins on an empty warehouse or on any that an earlier run has left. SIGHUP has it read its settings again.',
  settings: settingsIn(
    'api',
    'database',
    'sync',
    'access_log',
    'transcripts',
    'search',
    'crm',
    'http',
    'retention',
    'snapshot',
    'log',
  ),
  options: [],
  examples: [
    ['parley daemon', 'runs until it is stopped'],
    [
      'parley daemon --poll-seconds 10 --listen off',
      'looks for new things every ten seconds, without a status server',
    ],
  ],
  async run(context, input) {
    const load = () =>
      settingsFor(context, input, { requireApi: true, resourceNames: RESOURCE_NAMES }).settings
    const settings = load()
    const [{ runDaemon }, { createLog }, { createServiceManager }, { systemClock }] = await Promise.all([
      import('../daemon/daemon.ts'),
      import('../log.ts'),
      import('../service-manager.ts'),
      import('../clock.ts'),
    ])
    const { stderr, env, signal } = context
    const clock = systemClock()
    const logFor = ({ log: { level } }: typeof settings) =>
      createLog({ level, pretty: stderr.isTTY === true, colour: mayColour(stderr, env) })
    await runDaemon({
      settings,
      reload: load,
      onReload: context.onHangup,
      createLog: logFor,
      serviceManager: createServiceManager({ env, clock, log: await logFor(settings) }),
      clock,
      pid: process.pid,
      version: context.version,
      stop: signal,
    })
    return EXIT_STATUS.done
  },
}
