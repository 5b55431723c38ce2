import { DAY } from '../base/instants.ts'
import { countWhile } from '../base/timeline.ts'
import { forbidden, notFound } from '../http/answers.ts'
import type { Operation, OperationCall } from '../http/operation.ts'
import { arrayListing, v1CursorPage, v1NumberedPage } from '../http/paging.ts'
import type { AccessLog } from '../world/access-log.ts'

export const ACCESS_LOG_ROUTE = '/v1/public-api-access-logs'

export const workspaceOperations: readonly Operation[] = [
  { name: 'List members', template: '/v1/members', handle: listMembers },
  { name: 'List teams', template: '/v1/teams', handle: listTeams },
  { name: 'Get team', template: '/v1/teams/{teamId}', handle: readTeam },
  { name: 'List access logs', template: ACCESS_LOG_ROUTE, handle: listAccessLogs },
  { name: 'Get bot definition', template: '/v1/bot-definition', handle: readBot },
  { name: 'Get integrations', template: '/v1/settings/integrations', handle: readIntegrations },
]

const always = (): boolean => true

function listMembers({ query, world: { people } }: OperationCall): string {
  return v1NumberedPage(query, arrayListing(people.memberOrder(), people.memberJson, always))
}

function listTeams({ query, world: { people } }: OperationCall): string {
  return v1NumberedPage(query, arrayListing(people.teamOrder(), people.teamJson, always))
}

function readTeam({ parameters: [id = ''], world: { people } }: OperationCall): string {
  const index = people.teams.find(id)
  if (!people.teams.isPublished(index)) throw notFound('Team not found')
  return `{"data":${people.teamJson(index)}}`
}

const LONGEST_PERIOD = 31 * DAY

function listAccessLogs({ query, world, variants, cursors }: OperationCall): string {
  if (!variants.securityOption) throw forbidden()
  const from = query.instant('from')
  const to = query.instant(variants.accessLogEndParameter)
  if (from !== undefined && to !== undefined) {
    if (to < from) throw query.badRequest(`${variants.accessLogEndParameter} must not be before from`)
    if (to - from > LONGEST_PERIOD) throw query.badRequest('the period must not be longer than 31 days')
  }
  const { accessLog } = world
  const begin = from ?? (to === undefined ? undefined : to - LONGEST_PERIOD)
  return v1CursorPage(query, cursors, `access-logs?${query.filter()}`, {
    scan: (after, visit) => {
      let position = after ? accessLog.positionOf(after.index) + 1 : firstBefore(accessLog, to)
      for (; position < accessLog.count(); position++) {
        if (begin !== undefined && accessLog.timeOf(position) < begin) return
        if (!visit(position)) return
      }
    },
    positionOf: position => ({ at: 0, index: accessLog.sequenceOf(position) }),
    json: accessLog.json,
  })
}

function firstBefore(accessLog: AccessLog, end: number | undefined): number {
  if (end === undefined) return 0
  return countWhile(accessLog.count(), position => accessLog.timeOf(position) >= end)
}

function readBot({ query, world }: OperationCall): string {
  query.allowOnly([])
  const bot = world.botJson()
  if (bot === undefined) throw notFound('Bot definition not found')
  return `{"data":${bot}}`
}

function readIntegrations({ world, variants }: OperationCall): string {
  const integrations = world.integrationsJson()
  if (integrations === undefined) throw notFound()
  return variants.unstatedSingle === 'data' ? `{"data":${integrations}}` : integrations
}
