import type { Answer } from '../http/answers.ts'
import type { Operation } from '../http/operation.ts'
import { activityOperations } from './activities.ts'
import { collectionOperations } from './collections.ts'
import { meetingOperations } from './meetings.ts'
import { messageOperations } from './messages.ts'
import { objectOperations } from './objects.ts'
import { playbookOperations } from './playbooks.ts'
import { workspaceOperations } from './workspace.ts'

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

/** Returns the operation of a path, with or without a slash at the end; undefined when no route matches. */
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
