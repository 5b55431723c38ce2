import type { Scene, Sizes } from '../base/scene.ts'
import { createAccessLog } from './access-log.ts'
import { createActivities } from './activities/activities.ts'
import { createCollections } from './collections.ts'
import { createCustomers } from './crm/customers.ts'
import { createDealHistory } from './crm/deals.ts'
import { createPeople } from './crm/people.ts'
import { createRecords } from './crm/records.ts'
import { createMeetings } from './meetings/meetings.ts'
import { createMessages } from './messages/messages.ts'
import type { WorldParts } from './parts.ts'
import { createPlaybooks } from './playbooks.ts'
import { createTruth, type Truth } from './truth.ts'
import { botDefinition, integrationSettings } from './workspace-settings.ts'

/** The made-up workspace. Items are generated on demand; only times, order and changes are kept in memory. */
export interface World extends WorldParts {
  /** Everything that the API publishes now, before faults. */
  truth(): Truth
}

export interface WorldOptions {
  overviewsCompleteAfterMs?: number | undefined
  botConfigured: boolean
  integrations: boolean
}

export function createWorld(scene: Scene, options: WorldOptions): World {
  const people = createPeople(scene)
  const customers = createCustomers(scene)
  const history = createDealHistory(scene, customers)
  const records = createRecords(scene, { people, customers, history })
  const messages = createMessages(scene, people, customers)
  const meetings = createMeetings({ scene, people, customers }, options)
  const playbooks = createPlaybooks(scene)
  const collections = createCollections(scene)
  const activities = createActivities(scene, { people, customers, history, messages, meetings })
  const accessLog = createAccessLog(scene)
  let settingsRevision = 0
  const world: World = {
    scene,
    people,
    customers,
    records,
    messages,
    meetings,
    playbooks,
    collections,
    activities,
    accessLog,
    botJson: () => (options.botConfigured ? botDefinition(settingsRevision) : undefined),
    integrationsJson: () => (options.integrations ? integrationSettings(settingsRevision) : undefined),
    editSettings: () => {
      settingsRevision++
    },
    truth: () => createTruth(world),
  }
  return world
}

export function sizesOf(given: Partial<Sizes>): Sizes {
  const messages = given.messages ?? 2_000
  const deals = given.deals ?? 80
  const companies = given.companies ?? Math.ceil(deals * 0.6) + 10
  return {
    messages,
    deals,
    companies,
    contacts: given.contacts ?? companies * 3,
    meetings: given.meetings ?? 120,
    members: Math.max(1, given.members ?? 20),
    teams: given.teams ?? 5,
    collections: given.collections ?? 14,
    playbooks: given.playbooks ?? 6,
    customRecords: given.customRecords ?? 40,
    accessLogs: given.accessLogs ?? 1_500,
    transcriptTurns: given.transcriptTurns ?? 80,
  }
}
