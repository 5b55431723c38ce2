import { Argument } from 'commander'
import { isoInstant, systemClock } from '../clock.ts'
import { EXIT_STATUS } from '../errors.ts'
import type { ResourceName } from '../resource.ts'
import { type CommandDefinition, settingsFor, settingsIn } from './command.ts'
import { resourceCalled } from './resource-name.ts'
import { counted, wrap } from './wording.ts'

export const resyncCommand: CommandDefinition = {
  description:
    'Marks one resource to be read again from the start by the next backfill or by the daemon, together with the parts that have no list of their own: the texts of messages; the transcripts and playbook results of meetings; the meetings of collections; the links of CRM records. No row is dropped. While another process writes the warehouse it does nothing.',
  arguments: [new Argument('<resource>', 'its name, as parley status shows it')],
  settings: settingsIn('database'),
  options: [],
  examples: [
    ['parley resync meetings', 'meetings, their transcripts and results are read again by the next backfill'],
    ['parley resync message_bodies', 'the text of every message is read again, one request each'],
  ],
  async run(context, input) {
    const resource = resourceCalled(input.args[0] ?? '', 'There is')
    const { settings } = settingsFor(context, input, { requireApi: false })
    const { path, mode } = settings.database
    const [{ openStore }, { requireWarehouse }, { markForResync, withParts }] = await Promise.all([
      import('../store/store.ts'),
      import('../store/status.ts'),
      import('../store/resync.ts'),
    ])
    requireWarehouse(path)
    const clock = systemClock()
    const store = openStore({ path, mode, command: 'resync', pid: process.pid, clock })
    try {
      const marked = await store.transaction(() =>
        markForResync(store, withParts(resource), isoInstant(clock.now())),
      )
      const reads = marked.reduce((sum, one) => sum + one.reads, 0)
      const names = marked.map(one => one.resource)
      context.stdout.write(`${whatHappensNext(resource, names, reads).join('\n')}\n`)
      return EXIT_STATUS.done
    } finally {
      store.close()
    }
  },
}

const COLUMNS = 100

function whatHappensNext(resource: ResourceName, names: readonly ResourceName[], reads: number): string[] {
  const others = names.filter(name => name !== resource)
  const along = others.length === 0 ? '' : ` and with it ${others.join(' and ')},`
  const singly =
    reads === 0
      ? ''
      : ` What had been read one by one comes to ${counted(reads, 'request')}, besides the pages of the lists.`
  return [
    `Marked ${resource}${along} to be read again from the start.`,
    'No row was dropped: each stays as it is until the API tells something else.',
    `Next: parley backfill reads it all again (parley backfill --only ${names.join(',')} reads nothing else but what these need); a daemon does so when it is started.${singly}`,
  ].flatMap(sentence => wrap(sentence, COLUMNS))
}
