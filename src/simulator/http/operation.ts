import type { World } from '../world/world.ts'
import type { Cursors, Envelope } from './paging.ts'
import type { Query } from './query.ts'

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
