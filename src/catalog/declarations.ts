import type { Resource } from '../declare/resource.ts'
import { accessLogsResource } from '../resources/access-logs.ts'
import { activitiesResource } from '../resources/activities.ts'
import { botDefinitionResource } from '../resources/bot-definition.ts'
import { collectionMeetingsResource } from '../resources/collection-meetings.ts'
import { collectionsResource } from '../resources/collections.ts'
import { crmObjectsResource } from '../resources/crm-objects.ts'
import { crmRecordLinksResource } from '../resources/crm-record-links.ts'
import { crmRecordsResource } from '../resources/crm-records.ts'
import { integrationsResource } from '../resources/integrations.ts'
import { meetingsResource } from '../resources/meetings.ts'
import { membersResource } from '../resources/members.ts'
import { messageBodiesResource } from '../resources/message-bodies.ts'
import { messagesResource } from '../resources/messages.ts'
import { playbookResultsResource } from '../resources/playbook-results.ts'
import { playbooksResource } from '../resources/playbooks.ts'
import { teamsResource } from '../resources/teams.ts'
import { transcriptsResource } from '../resources/transcripts.ts'

/** Written by `npm run schema` from the files in `src/resources`. */
export const DECLARATIONS: readonly Resource[] = [
  membersResource,
  teamsResource,
  collectionsResource,
  collectionMeetingsResource,
  activitiesResource,
  messagesResource,
  messageBodiesResource,
  meetingsResource,
  transcriptsResource,
  playbookResultsResource,
  playbooksResource,
  crmObjectsResource,
  crmRecordsResource,
  crmRecordLinksResource,
  accessLogsResource,
  botDefinitionResource,
  integrationsResource,
]
