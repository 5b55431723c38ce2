import { Argument } from 'commander'
import { isoInstant, systemClock } from '../clock.ts'
import { EXIT_STATUS } from '../errors.ts'
import type { ResourceName } from '../resource.ts'
import type { Marked } from '../store/resync.ts'
import { type CommandDefinition, settingsFor, settingsIn } from './command.ts'
import { doOrHandOver, type Order, whoTakesItUp } from './hand-over.ts'
import { resourceCalled } from './resource-name.ts'
import { counted, wrap } from './wording.ts'

export const resyncCommand: CommandDefinition = {
  description:
    'Marks one resource to be read again from the start by the next backfill or by the daemon, together with the parts that have no list of their own: the texts of messages; the transcripts and playbook results of meetings; the meetings of collections; the links of CRM records. No row is dropped. While another process writes the warehouse, the wish is handed over to it: a daemon takes it up within seconds; after a backfill the next one does, or the daemon.',
  arguments: [new Argument('<resource>', 'its name, as parley status shows it')],
  settings: settingsIn('database'),
  options: [],
  examples: [
    ['parley resync meetings', 'meetings, their transcripts and results are read again'],
    ['parley resync message_bodies', 'the text of every message is read again, one request each'],
  ],
  async run(context, input) {
    const resource = resourceCalled(input.args[0] ?? '', 'There is')
    const { settings } = settingsFor(context, input, { requireApi: false })
    const { path, mode } = settings.database
    const crmTables = settings.crm.tables
    const { requireWarehouse } = await import('../store/status.ts')
    requireWarehouse(path)
    const sentences = await resync(resource, { path, mode, crmTables, clock: systemClock() })
    context.stdout.write(`${sentences.flatMap(sentence => wrap(sentence, COLUMNS)).join('\n')}\n`)
    return EXIT_STATUS.done
  },
}

const COLUMNS = 100

/** Returns what was done, in sentences. */
async function resync(resource: ResourceName, order: Order): Promise<string[]> {
  const { markForResync, withParts } = await import('../store/resync.ts')
  const names = withParts(resource)
  const handled = await doOrHandOver(order, { kind: 'resync', resource }, store =>
    markForResync(store, names, isoInstant(order.clock.now())),
  )
  if ('done' in handled) return whatHappensNext(resource, handled.done)
  return [
    `Handed over: ${among(resource, names)} to be read again from the start.`,
    whoTakesItUp(handled.writer),
    NOTHING_LOST,
  ]
}

/** `meetings and with it transcripts and playbook_results,` */
function among(resource: ResourceName, names: readonly ResourceName[]): string {
  const others = names.filter(name => name !== resource)
  return others.length === 0 ? resource : `${resource} and with it ${others.join(' and ')},`
}

const NOTHING_LOST = 'No row was dropped: each stays as it is until the API tells something else.'

function whatHappensNext(resource: ResourceName, marked: readonly Marked[]): string[] {
  const names = marked.map(one => one.resource)
  const reads = marked.reduce((sum, one) => sum + one.reads, 0)
  const singly =
    reads === 0
      ? ''
      : ` What had been read one by one comes to ${counted(reads, 'request')}, besides the pages of the lists.`
  return [
    `Marked ${among(resource, names)} to be read again from the start.`,
    NOTHING_LOST,
    `Next: parley backfill reads it all again (parley backfill --only ${names.join(',')} reads nothing else but what these need); a daemon does so when it is started or goes on.${singly}`,
  ]
}
