import { Argument } from 'commander'
import { isoInstant, systemClock } from '../clock.ts'
import type { Accepted } from '../engine/deletions/settle.ts'
import { EXIT_STATUS } from '../errors.ts'
import type { ResourceName } from '../resource.ts'
import { type CommandDefinition, settingsFor, settingsIn } from './command.ts'
import { doOrHandOver, type Order, whoTakesItUp } from './hand-over.ts'
import { resourceCalled } from './resource-name.ts'
import { counted, wrap } from './wording.ts'

export const acceptDeletionsCommand: CommandDefinition = {
  description:
    'Applies the deletions of one resource that the mass-deletion guard holds back, without waiting for a second complete pass. First make sure that the rows are really gone from the workspace: a key that lost rights looks the same. While another process writes the warehouse, the request is handed over to it: a daemon takes it up within seconds; after a backfill the next one does, or the daemon.',
  arguments: [new Argument('<resource>', 'its name, as parley status shows it')],
  settings: settingsIn('database'),
  options: [],
  examples: [['parley accept-deletions meetings', 'deletes the meetings that are held back']],
  async run(context, input) {
    const resource = resourceCalled(input.args[0] ?? '', 'There is')
    const { settings } = settingsFor(context, input, { requireApi: false })
    const { path, mode } = settings.database
    const { requireWarehouse } = await import('../store/status.ts')
    requireWarehouse(path)
    const order = { path, mode, crmTables: settings.crm.tables, clock: systemClock() }
    const sentences = await accept(resource, order)
    context.stdout.write(`${sentences.flatMap(sentence => wrap(sentence, COLUMNS)).join('\n')}\n`)
    return EXIT_STATUS.done
  },
}

const COLUMNS = 100

/** Returns what was done, in sentences. */
async function accept(resource: ResourceName, order: Order): Promise<string[]> {
  const [{ acceptDeletions }, { isHeldBack }] = await Promise.all([
    import('../engine/deletions/settle.ts'),
    import('../store/status.ts'),
  ])
  if (!isHeldBack(order.path, resource)) return [nothingHeld(resource)]
  const handled = await doOrHandOver(order, { kind: 'accept-deletions', resource }, store => {
    const counts = { requests: 0, throttled: 0, rowsRead: 0, rowsChanged: 0, rowsDeleted: 0 }
    const now = () => isoInstant(order.clock.now())
    return acceptDeletions({ store, now, counts: () => counts }, resource)
  })
  if ('writer' in handled) {
    return [
      `Handed over: the held-back deletions of ${resource} to be applied.`,
      whoTakesItUp(handled.writer),
    ]
  }
  return handled.done ? whatWasDone(resource, handled.done) : [nothingHeld(resource)]
}

const nothingHeld = (resource: ResourceName) =>
  `No deletion of ${resource} is held back; nothing was changed.`

function whatWasDone(resource: ResourceName, { rows, isConfirming }: Accepted): string[] {
  const rest = isConfirming ? ['A confirming pass is under way: it deletes the rest when it ends.'] : []
  return [
    `Deleted ${counted(rows, 'row')} of ${resource} that were held back.`,
    ...rest,
    'A row that the API shows again comes back.',
  ]
}
