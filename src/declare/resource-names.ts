/** Written by `npm run schema` from the files in `src/resources`. */
export const RESOURCE_NAMES = [
  'members',
  'teams',
  'collections',
  'collection_meetings',
  'activities',
  'messages',
  'message_bodies',
  'meetings',
  'transcripts',
  'playbook_results',
  'playbooks',
  'crm_objects',
  'crm_records',
  'crm_record_links',
  'access_logs',
  'bot_definition',
  'integrations',
] as const

export type ResourceName = (typeof RESOURCE_NAMES)[number]
