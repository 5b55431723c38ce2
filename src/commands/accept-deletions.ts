import { Argument } from 'commander'
import { isoInstant } from '../base/clock.ts'
import { RESOURCE_NAMES, type ResourceName } from '../declare/resource-names.ts'
import type { AcceptedDeletions } from '../engine/deletions/apply.ts'
import { countText } from '../terminal/wording.ts'
import { type HandOverOptions, handOverSentence, resourceCommand, runOrHandOver } from './hand-over.ts'

export const acceptDeletionsCommand = resourceCommand({
  description:
    'Applies the deletions of one resource that the mass-deletion guard holds back, without waiting for a second complete pass. First check that the rows are really gone from the workspace: an API key that lost rights has the same effect. If another process is writing the warehouse, the request is handed over: a daemon applies it within seconds; during a backfill it waits for the next backfill or daemon.',
  examples: [['parley accept-deletions meetings', 'deletes the held-back meetings']],
  names: RESOURCE_NAMES,
  argument: new Argument('<resource>', 'name of the resource, as in parley status'),
  work: acceptOrHandOver,
})

async function acceptOrHandOver(resource: ResourceName, order: HandOverOptions): Promise<string[]> {
  const [{ acceptDeletions }, { isHeldBack }] = await Promise.all([
    import('../engine/deletions/apply.ts'),
    import('../store/status/status.ts'),
  ])
  if (!isHeldBack(order.path, resource)) return [nothingHeldSentence(resource)]
  const handled = await runOrHandOver(order, { kind: 'accept-deletions', resource }, store => {
    const counts = { requests: 0, throttled: 0, rowsRead: 0, rowsChanged: 0, rowsNew: 0, rowsDeleted: 0 }
    const now = () => isoInstant(order.clock.now())
    const { after } = store.dueClock
    return acceptDeletions({ store, now, after, runs: { counts: () => counts } }, resource)
  })
  if ('writer' in handled) {
    return [
      `Requested: apply the held-back deletions of ${resource}.`,
      handOverSentence(handled.writer, order.clock.now()),
    ]
  }
  return handled.done ? acceptedSentences(resource, handled.done) : [nothingHeldSentence(resource)]
}

const nothingHeldSentence = (resource: ResourceName) =>
  `No deletions of ${resource} are held back. Nothing was changed.`

function acceptedSentences(resource: ResourceName, { rows, isConfirming }: AcceptedDeletions): string[] {
  const rest = isConfirming
    ? [
        'A confirming pass has begun and deletes the rest when it ends: the next parley backfill or daemon continues it.',
      ]
    : []
  return [
    `Deleted ${countText(rows, 'held-back row')} of ${resource}.`,
    ...rest,
    'A deleted row that the API lists again becomes live again.',
  ]
}
