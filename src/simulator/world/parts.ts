import type { Scene } from '../base/scene.ts'
import type { AccessLog } from './access-log.ts'
import type { Activities } from './activities/activities.ts'
import type { Collections } from './collections.ts'
import type { Customers } from './crm/customers.ts'
import type { People } from './crm/people.ts'
import type { Records } from './crm/records.ts'
import type { Meetings } from './meetings/meetings.ts'
import type { Messages } from './messages/messages.ts'
import type { Playbooks } from './playbooks.ts'

/** The parts of the world; each part knows which of its items the API publishes. */
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
  /** undefined when the workspace has no bot definition. */
  botJson(): string | undefined
  integrationsJson(): string | undefined
  editSettings(): void
}
