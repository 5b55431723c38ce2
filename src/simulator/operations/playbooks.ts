import { notFound } from '../http/answers.ts'
import type { Operation, OperationCall } from '../http/operation.ts'
import { arrayListing, shapedPage } from '../http/paging.ts'
import { published } from '../world/crm/people.ts'

export const playbookOperations: readonly Operation[] = [
  { name: 'List playbooks', template: '/v1/playbooks', handle: list },
  { name: 'Get playbook', template: '/v1/playbooks/{playbookId}', handle: read },
  {
    name: 'Get playbook execution setting',
    template: '/v1/playbooks/{playbookId}/execution-setting',
    handle: readSetting,
  },
]

function list({ query, world: { playbooks }, variants, cursors }: OperationCall): string {
  return shapedPage(
    variants.playbookList,
    query,
    cursors,
    `playbooks?${query.filter()}`,
    arrayListing(published(playbooks.items), playbooks.listJson, (index, last) => index > last),
  )
}

/** Single reads return inactive playbooks too. */
function playbookOf({ parameters: [id = ''], world: { playbooks } }: OperationCall): number {
  const index = playbooks.items.find(id)
  if (index < 0 || playbooks.items.state(index) === 'deleted') throw notFound('Playbook not found')
  return index
}

function read(call: OperationCall): string {
  return `{"data":${call.world.playbooks.json(playbookOf(call))}}`
}

function readSetting(call: OperationCall): string {
  const json = call.world.playbooks.settingJson(playbookOf(call))
  return call.variants.unstatedSingle === 'data' ? `{"data":${json}}` : json
}
