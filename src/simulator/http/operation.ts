import type { World } from '../world/world.ts'
import type { Cursors, Envelope } from './paging.ts'
import type { RequestQuery } from './query.ts'

/** The service's answers where the specification leaves the choice open. */
export interface Variants {
  meetingList: Envelope
  playbookList: Envelope
  objectList: Envelope
  /** The name of the id field in the meeting list. */
  meetingListId: 'meeting_id' | 'id'
  /** Single reads whose envelope the specification does not show: bare, or in `data`. */
  unstatedSingle: 'bare' | 'data'
  /** The playbook results of a meeting whose overview is not COMPLETED. */
  unreadyResults: 'empty' | 'not-found'
  accessLogEndParameter: string
  securityOption: boolean
}

/** One request to one operation. */
export interface OperationCall {
  parameters: readonly string[]
  query: RequestQuery
  world: World
  variants: Variants
  cursors: Cursors
}

export interface Operation {
  /** The name in the access log. */
  name: string
  /** The route template, with `{name}` for path parameters. */
  template: string
  handle(call: OperationCall): string
}
