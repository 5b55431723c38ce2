import { describe, expect, test } from 'vitest'
import { TABLES } from '../../src/catalog/catalog.ts'

/**
 * Texts that stay when a deleted row is purged: ids of other rows, and words of a fixed set that the API or parley
 * defines. Texts, speech and names of people are never among them.
 */
const STAYS = [
  'members.role',
  'collections.visibility',
  'activities.type',
  'activities.source_type',
  'activities.source_id',
  'activities.created_via',
  'activities.actor_kind',
  'activities.actor_id',
  'message_copies.header_message_id',
  'message_copies.mail_id',
  'message_copies.thread_id',
  'message_copies.text_state',
  'messages.id',
  'messages.thread_id',
  'messages.text_state',
  'meetings.workspace_id',
  'meetings.platform',
  'meetings.base_type',
  'meetings.recording_source',
  'meetings.overview_status',
  'meetings.crm_type',
  'meetings.transcript_languages',
  'meetings.access',
  'meetings.transcript_state',
  'meeting_crm_records.record_id',
  'meeting_crm_records.record_object_type',
  'meeting_related_objects.object_type',
  'meeting_related_objects.object_id',
  'meeting_related_objects.company_ids',
  'meeting_related_objects.crm_record_id',
  'meeting_related_objects.crm_record_object_type',
  'playbook_talk_points.target',
  'playbook_talk_points.data_type',
  'playbook_talk_points.format_style',
  'playbook_results.meeting_id',
  'playbook_results.playbook_id',
  'crm_objects.name_plural',
  'crm_objects.table_name',
  'crm_fields.type',
  'crm_fields.relation_type',
  'crm_fields.relation_target_object',
  'crm_fields.relation_target_resource',
  'crm_fields.column_name',
  'crm_records.visibility',
  'crm_records.created_by_kind',
  'crm_records.updated_by_kind',
  // Requests of parley itself: no personal content, and no entry is ever deleted.
  'access_logs.operation',
  'access_logs.method',
  'access_logs.route',
  'access_logs.path',
  'access_logs.api_key_suffix',
  'access_logs.completion',
  'bot_definition.message_on_join_frequency',
]

/** Child rows of a deleted row that stay without their content, and why. */
const ROWS_STAY: Readonly<Record<string, string>> = {
  team_members: 'ids only',
  activity_links: 'ids only',
  meeting_owner_teams: 'whose team met how often is still counted',
  meeting_crm_records: 'a deal still knows how many meetings it took',
  meeting_related_objects: 'a company still knows how many meetings it took',
  playbook_talk_points: 'answers in live results point at them',
  crm_fields: 'the history of records names them',
}

describe('every column of text or JSON', () => {
  const texts = [...TABLES.values()].flatMap(({ table }) =>
    Object.entries(table.columns)
      .filter(([column, { kind }]) => (kind === 'text' || kind === 'json') && !table.key.includes(column))
      .map(([column, { content }]) => ({
        place: `${table.name}.${column}`,
        isContent: table.content || content === true,
      })),
  )

  test('the column is content, part of a key, or known not to be content', () => {
    const undecided = texts.filter(({ place, isContent }) => !isContent && !STAYS.includes(place))
    expect(undecided.map(({ place }) => place)).toEqual([])
  })

  test('a column that is known not to be content exists and is not declared as content', () => {
    const stays = texts.filter(({ isContent }) => !isContent).map(({ place }) => place)
    expect(STAYS.filter(place => !stays.includes(place))).toEqual([])
  })

  test('a content column may be NULL and is no part of a key', () => {
    const kept = [...TABLES.values()].filter(({ table }) => !table.content)
    const stuck = kept.flatMap(({ table }) =>
      Object.entries(table.columns).flatMap(([column, { content, notNull }]) =>
        content && (notNull || table.key.includes(column)) ? [`${table.name}.${column}`] : [],
      ),
    )
    expect(stuck).toEqual([])
  })
})

describe('every table of rows below another one', () => {
  const children = [...TABLES.values()].filter(({ root }) => root !== undefined).map(({ table }) => table)

  test('the table is purged as a whole, or has a reason to stay', () => {
    const undecided = children.filter(({ name, content }) => content === name in ROWS_STAY)
    expect(undecided.map(({ name }) => name)).toEqual([])
  })

  test('the table is purged together with all tables below it', () => {
    const left = [...TABLES.values()].filter(({ table, parent: above }) => above?.content && !table.content)
    expect(left.map(({ table }) => table.name)).toEqual([])
  })
})
