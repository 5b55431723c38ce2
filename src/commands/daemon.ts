import { EXIT_STATUS } from '../base/errors.ts'
import { hasColours } from '../terminal/output.ts'
import { type CommandDefinition, loadCommandSettings, settingsOfSections } from './base/command.ts'

export const daemonCommand: CommandDefinition = {
  description:
    'Keeps the warehouse in sync with the API until it is stopped. New items arrive with the next poll. Edits, deletions and items that appear late in the API arrive within the audit interval for their age. The access log is an exception: a period of it is closed after two reads that agree, and an entry that appears in it later arrives after parley resync access_logs. It starts with an empty warehouse or continues an existing one. SIGHUP makes it read the settings again.',
  settings: settingsOfSections(
    'api',
    'database',
    'sync',
    'access_log',
    'transcripts',
    'search',
    'crm',
    'http',
    'hooks',
    'retention',
    'snapshot',
    'publish',
    'log',
  ),
  options: [],
  examples: [
    ['parley daemon', 'runs until it is stopped'],
    ['parley daemon --poll-seconds 10 --listen off', 'polls every ten seconds, without a status server'],
  ],
  async run(context, input) {
    // Without a listener, SIGHUP, the request to reload, would end the daemon. The settings are read later.
    context.onSignal('SIGHUP', () => undefined)
    const [{ declaredTableNames }, { runDaemon }, { createLog }, { createServiceManager }, { systemClock }] =
      await Promise.all([
        import('../export/chosen-tables.ts'),
        import('../daemon/daemon.ts'),
        import('../base/log.ts'),
        import('../daemon/service-manager.ts'),
        import('../base/clock.ts'),
      ])
    const need = { requireApi: true, tableNames: declaredTableNames() } as const
    const load = () => loadCommandSettings(context, input, need).settings
    const settings = load()
    const { stderr, env, log: stream, signal } = context
    const clock = systemClock()
    const logFor = ({ log: { level } }: typeof settings) =>
      createLog({ level, pretty: stderr.isTTY === true, colour: hasColours(stderr, env), stream })
    const log = await logFor(settings)
    context.onSignal('SIGUSR1', () =>
      log.info('SIGUSR1 was ignored: it neither opens the debugger of Node nor reopens the log'),
    )
    await runDaemon({
      settings,
      reload: load,
      onReload: listener => context.onSignal('SIGHUP', listener),
      createLog: logFor,
      serviceManager: createServiceManager({ env, clock, log }),
      env,
      clock,
      pid: process.pid,
      version: context.version,
      stop: signal,
    })
    return EXIT_STATUS.done
  },
}
