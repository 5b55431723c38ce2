import { forbidden, notFound } from '../http/answers.ts'
import type { Operation, OperationCall } from '../http/operation.ts'
import { shapedPage } from '../http/paging.ts'
import { resultsOf } from '../world/truth.ts'

export const meetingOperations: readonly Operation[] = [
  { name: 'List meetings', template: '/v1/meetings', handle: list },
  { name: 'Get meeting', template: '/v1/meetings/{meetingId}', handle: read },
  { name: 'Get transcript', template: '/v1/meetings/{meetingId}/transcript', handle: readTranscript },
  {
    name: 'List playbook results',
    template: '/v1/meetings/{meetingId}/playbook-results',
    handle: listResults,
  },
  {
    name: 'Get playbook result',
    template: '/v1/meetings/{meetingId}/playbook-results/{playbookId}',
    handle: readResult,
  },
]

function list({ query, world: { meetings, collections }, variants, cursors }: OperationCall): string {
  const collectionId = query.nonEmptyText('collection_id')
  const crm = query.oneOf('has_crm_integrations', ['true', 'false'])
  const collection = collectionId === undefined ? undefined : collections.items.find(collectionId)
  const isWanted = (index: number): boolean =>
    meetings.items.isPublished(index) &&
    (collection === undefined || collections.hasMeeting(collection, index)) &&
    (crm === undefined || meetings.hasCrm(index) === (crm === 'true'))
  const isUnknownCollection = collection !== undefined && !collections.items.isPublished(collection)
  return shapedPage(variants.meetingList, query, cursors, `meetings?${query.filter()}`, {
    scan: (after, visit) => {
      if (isUnknownCollection) return
      meetings.timeline.scan({ after }, index => (isWanted(index) ? visit(index) : true))
    },
    positionOf: index => ({ at: meetings.timeline.timeOf(index), index }),
    json: index => meetings.listJson(index, variants.meetingListId),
  })
}

/** The index of a readable meeting. An ATTENDEES_ONLY meeting answers 403, any other unpublished one 404. */
function meetingOf({ parameters: [id = ''], world: { meetings } }: OperationCall): number {
  const index = meetings.items.find(id)
  if (index >= 0 && meetings.items.state(index) === 'hidden') throw forbidden()
  if (!meetings.items.isPublished(index)) throw notFound('Meeting not found')
  return index
}

function read(call: OperationCall): string {
  return `{"data":${call.world.meetings.detailJson(meetingOf(call))}}`
}

function readTranscript(call: OperationCall): string {
  return `{"data":${call.world.meetings.transcriptJson(meetingOf(call))}}`
}

function listResults(call: OperationCall): string {
  const index = meetingOf(call)
  if (call.world.meetings.isOverviewReady(index))
    return `{"data":[${resultsOf(call.world, index).join(',')}]}`
  if (call.variants.unreadyResults === 'not-found') throw notFound('Playbook result not found')
  return '{"data":[]}'
}

function readResult(call: OperationCall): string {
  const index = meetingOf(call)
  const { meetings, playbooks } = call.world
  const playbook = playbooks.items.find(call.parameters[1] ?? '')
  const position = playbooks.runsIn(index).indexOf(playbook)
  const result = meetings.isOverviewReady(index) ? resultsOf(call.world, index)[position] : undefined
  if (result === undefined) throw notFound('Playbook result not found')
  return `{"data":${result}}`
}
