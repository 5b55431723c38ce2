import type { AccessLog } from './access-log.ts'
import type { Activities } from './activities.ts'
import type { Collections } from './collections.ts'
import type { Customers } from './customers.ts'
import type { Meetings } from './meetings.ts'
import type { Messages } from './messages.ts'
import type { People } from './people.ts'
import type { Playbooks } from './playbooks.ts'
import type { Records } from './records.ts'
import type { Scene } from './scene.ts'

/** Everything in the world; each part knows what the API publishes of it. */
export interface WorldParts {
  scene: Scene
  people: People
  customers: Customers
  records: Records
  messages: Messages
  meetings: Meetings
  playbooks: Playbooks
  collections: Collections
  activities: Activities
  accessLog: AccessLog
  /** JSON of the bot definition; undefined when the workspace has none. */
  bot(): string | undefined
  integrations(): string | undefined
  editSettings(): void
}
