import type { Answer } from './answers.ts'
import { activityOperations } from './operations/activities.ts'
import { collectionOperations } from './operations/collections.ts'
import { meetingOperations } from './operations/meetings.ts'
import { messageOperations } from './operations/messages.ts'
import { objectOperations } from './operations/objects.ts'
import { playbookOperations } from './operations/playbooks.ts'
import { workspaceOperations } from './operations/workspace.ts'
import type { Cursors, Envelope } from './paging.ts'
import type { Query } from './query.ts'
import type { World } from './world/world.ts'

/** How the service answers where the specification leaves it open. */
export interface Variants {
  meetingList: Envelope
  playbookList: Envelope
  objectList: Envelope
  /** The name of the id in the meeting list. */
  meetingListId: 'meeting_id' | 'id'
  /** Single reads whose placement is not shown: bare, or in `data`. */
  unstatedSingle: 'bare' | 'data'
  /** Playbook results of a meeting whose overview is not COMPLETED. */
  unreadyResults: 'empty' | 'not-found'
  accessLogEndParameter: string
  securityOption: boolean
}

/** One request to one operation. */
export interface Call {
  parameters: readonly string[]
  query: Query
  world: World
  variants: Variants
  cursors: Cursors
}

export interface Operation {
  /** Display name, as the access log has it. */
  name: string
  /** Route template with `{name}` for path parameters. */
  template: string
  handle(call: Call): string
}

export interface Route {
  operation: Operation
  parameters: string[]
}

const OPERATIONS: readonly Operation[] = [
  ...activityOperations,
  ...messageOperations,
  ...objectOperations,
  ...workspaceOperations,
  ...collectionOperations,
  ...meetingOperations,
  ...playbookOperations,
]

const TABLE = OPERATIONS.map(operation => ({ operation, parts: operation.template.split('/') }))

/** Finds the operation of a path; a slash at the end does not matter. undefined when there is none. */
export function findRoute(path: string): Route | undefined {
  const trimmed = path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
  const given = trimmed.split('/')
  for (const { operation, parts } of TABLE) {
    if (parts.length !== given.length) continue
    const parameters: string[] = []
    const isMatch = parts.every((part, n) => {
      const value = given[n] ?? ''
      if (!part.startsWith('{')) return part === value
      parameters.push(value)
      return value !== ''
    })
    if (isMatch) return { operation, parameters }
  }
  return undefined
}

export function ok(body: string): Answer {
  return { status: 200, body }
}

export function routeTemplates(): string[] {
  return OPERATIONS.map(operation => operation.template)
}
