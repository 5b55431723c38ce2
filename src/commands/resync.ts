import { Argument } from 'commander'
import { isoInstant } from '../base/clock.ts'
import { RESOURCE_NAMES } from '../declare/resource-names.ts'
import { REPORTS, type Resyncable } from '../declare/resyncable.ts'
import type { Marked } from '../store/sync/resync.ts'
import { countText } from '../terminal/wording.ts'
import { type HandOverOptions, handOverSentence, resourceCommand, runOrHandOver } from './hand-over.ts'

export const resyncCommand = resourceCommand({
  description:
    'Marks one resource to be read again from the start by the next backfill or daemon. Its parts without a list are read again too: message texts; transcripts and playbook results of meetings; meetings of collections; links of CRM records. No row is deleted first. The name reports stands for the tables for reports: they are computed again from the rows of the warehouse, without a request. If another process is writing the warehouse, the request is handed over: a daemon applies it within seconds; during a backfill it waits for the next backfill or daemon.',
  examples: [
    ['parley resync meetings', 'reads meetings, transcripts and playbook results again'],
    ['parley resync reports', 'computes the tables for reports again'],
    ['parley resync message_bodies', 'reads the text of every message again, with one request each'],
  ],
  names: [...RESOURCE_NAMES, REPORTS],
  argument: new Argument('<resource|reports>', 'name of the resource, as in parley status; or reports'),
  work: resync,
})

async function resync(resource: Resyncable, order: HandOverOptions): Promise<string[]> {
  const { resourceWithParts } = await import('../store/sync/resync.ts')
  const names = resourceWithParts(resource)
  const handled = await runOrHandOver(order, { kind: 'resync', resource }, store =>
    store.resync(names, isoInstant(order.clock.now())),
  )
  if ('done' in handled) return markedSentences(resource, handled.done)
  const what =
    resource === REPORTS
      ? 'compute the tables for reports again'
      : `read ${resourcesText(resource, names)} again from the start`
  return [
    `Requested: ${what}.`,
    handOverSentence(handled.writer, order.clock.now()),
    resource === REPORTS ? NO_REQUEST : NO_ROW_DROPPED,
  ]
}

/** `meetings with transcripts and playbook_results` */
function resourcesText(resource: Resyncable, names: readonly Resyncable[]): string {
  const others = names.filter(name => name !== resource)
  return others.length === 0 ? resource : `${resource} with ${others.join(' and ')}`
}

const NO_ROW_DROPPED = 'No row was deleted: each row stays until the API returns other data.'

const NO_REQUEST = 'They are made of the rows of the warehouse, so this takes no request to the API.'

function markedSentences(resource: Resyncable, marked: readonly Marked[]): string[] {
  if (resource === REPORTS)
    return [
      'Marked the tables for reports to be computed again.',
      NO_REQUEST,
      'Next: run parley backfill, which computes them at its end. A daemon does so when it starts or resumes.',
    ]
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
