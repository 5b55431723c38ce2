import { isUuid } from '../base/ids.ts'
import { notFound } from '../http/answers.ts'
import type { Operation, OperationCall } from '../http/operation.ts'
import { v2Page } from '../http/paging.ts'
import type { Link } from '../world/activities/links.ts'
import { CONTEXT_TYPES, SOURCE_TYPES } from '../world/activities/origins.ts'

export const activityOperations: readonly Operation[] = [
  { name: 'List activities', template: '/v2/activities', handle: list },
  { name: 'Get activity', template: '/v2/activities/{activityId}', handle: read },
]

function list({ query, world, cursors }: OperationCall): string {
  const contextType = query.oneOf('context_type', CONTEXT_TYPES)
  const contextId = query.nonEmptyText('context_id')
  if (contextId !== undefined && contextType === undefined) {
    throw query.badRequest('context_type is required when context_id is given')
  }
  const sourceType = query.oneOf('source_type', SOURCE_TYPES)
  const oldest = query.instant('occurred_from')
  const newest = query.instant('occurred_to')
  const contextIndex =
    contextId === undefined || contextType === undefined
      ? undefined
      : (world.records.itemsOf(contextType)?.find(contextId) ?? -1)
  const wanted = (links: readonly Link[]): boolean =>
    contextType === undefined
      ? links.length > 0
      : links.some(link => link.type === contextType && (contextIndex ?? link.index) === link.index)
  const { activities } = world
  return v2Page(query, cursors, `activities?${query.filter()}`, {
    positionOf: index => ({ at: activities.timeline.timeOf(index), index }),
    json: index => activities.json(index),
    scan: (after, visit) => {
      if (contextIndex === -1) return
      activities.timeline.scan({ after, oldest, newest }, index => {
        if (!activities.items.isPublished(index)) return true
        if (sourceType !== undefined && activities.sourceTypeOf(index) !== sourceType) return true
        return wanted(activities.linksOf(index)) ? visit(index) : true
      })
    },
  })
}

function read({ parameters: [id = ''], query, world: { activities } }: OperationCall): string {
  if (!isUuid(id)) throw query.badRequest('activityId must be a UUID')
  const index = activities.items.find(id)
  if (!activities.items.isPublished(index)) throw notFound('Activity not found')
  return activities.json(index)
}
