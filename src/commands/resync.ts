import { isoInstant } from '../base/clock.ts'
import type { ResourceName } from '../declare/resource-names.ts'
import type { Marked } from '../store/sync/resync.ts'
import { countText } from '../terminal/wording.ts'
import { type HandOverOptions, handOverSentence, resourceCommand, runOrHandOver } from './hand-over.ts'

export const resyncCommand = resourceCommand({
  description:
    'Marks one resource to be read again from the start by the next backfill or daemon. Its parts without a list are read again too: message texts; transcripts and playbook results of meetings; meetings of collections; links of CRM records. No row is deleted first. If another process is writing the warehouse, the request is handed over: a daemon applies it within seconds; during a backfill it waits for the next backfill or daemon.',
  examples: [
    ['parley resync meetings', 'reads meetings, transcripts and playbook results again'],
    ['parley resync message_bodies', 'reads the text of every message again, with one request each'],
  ],
  work: resync,
})

async function resync(resource: ResourceName, order: HandOverOptions): Promise<string[]> {
  const { resourceWithParts } = await import('../store/sync/resync.ts')
  const names = resourceWithParts(resource)
  const handled = await runOrHandOver(order, { kind: 'resync', resource }, store =>
    store.resync(names, isoInstant(order.clock.now())),
  )
  if ('done' in handled) return markedSentences(resource, handled.done)
  return [
    `Requested: read ${resourcesText(resource, names)} again from the start.`,
    handOverSentence(handled.writer, order.clock.now()),
    NO_ROW_DROPPED,
  ]
}

/** `meetings with transcripts and playbook_results` */
function resourcesText(resource: ResourceName, names: readonly ResourceName[]): string {
  const others = names.filter(name => name !== resource)
  return others.length === 0 ? resource : `${resource} with ${others.join(' and ')}`
}

const NO_ROW_DROPPED = 'No row was deleted: each row stays until the API returns other data.'

function markedSentences(resource: ResourceName, marked: readonly Marked[]): string[] {
  const names = marked.map(one => one.resource)
  const reads = marked.reduce((sum, one) => sum + one.reads, 0)
  const itemReads =
    reads === 0
      ? ''
      : ` Single items take ${countText(reads, 'request')}, in addition to the pages of the lists.`
  return [
    `Marked ${resourcesText(resource, names)} to be read again from the start.`,
    NO_ROW_DROPPED,
    `Next: run parley backfill, or parley backfill --only ${names.join(',')} to read only these and their parents. A daemon reads them when it starts or resumes.${itemReads}`,
  ]
}
