import type { TruthKind } from '../../src/simulator/world/truth.ts'
import { canonicalJson, type Fields, fieldsOf, type Json, listOf } from './exact-json.ts'
import { expectedMessages } from './expected-messages.ts'
import { type Row, rowOf, shape } from './row-shape.ts'
import type { Truth } from './truth.ts'

/**
 * A second, independent implementation of the warehouse contract: from what the simulator publishes to the rows of every table.
 * It and `expected-messages.ts` import from `src/` only types and the simulator's list of kinds. A new column or table of the
 * contract needs a line here.
 */

/** The expected content of a table: all of `rows`, and possibly some of `optional`. */
export interface ExpectedTable {
  table: string
  key: readonly string[]
  /** JSON columns, compared by value. */
  json: readonly string[]
  rows: readonly Row[]
  /** Rows that only single reads return. Earlier answers decide whether they are known. */
  optional: readonly Row[]
  /** For a child table: the table of its parent rows, and the columns that refer to them. */
  parent?: { table: string; on: Readonly<Record<string, string>>; open?: string }
  isView?: boolean
}

export interface ExpectedOptions {
  /** The value of --since, in the warehouse's format of instants. */
  since?: string
  /** Resources that this workspace does not offer although the simulator has their data. */
  withheld?: readonly TruthKind[]
  /** Only these tables; all when not given. */
  tables?: readonly string[]
}

/** The rows that the warehouse contract promises for what the API publishes. */
export function expectedWarehouse(truth: Truth, options: ExpectedOptions = {}): ExpectedTable[] {
  const { since, withheld = [], tables } = options
  const offered = { ...truth, ...Object.fromEntries(withheld.map(kind => [kind, []])) }
  const all = allTables(since === undefined ? offered : boundedBy(offered, since))
  return tables ? all.filter(each => tables.includes(each.table)) : all
}

function allTables(bounded: Truth): ExpectedTable[] {
  return [
    ...people(bounded),
    ...activities(bounded),
    ...expectedMessages(bounded.messages),
    ...meetings(bounded),
    ...results(bounded),
    ...playbooks(bounded),
    ...crm(bounded),
    accessLogs(bounded),
    ...settings(bounded),
  ]
}

/** Collection meetings and lists without a time are kept. */
function boundedBy(truth: Truth, since: string): Truth {
  const after = (field: string) => (item: Fields) =>
    new Date(String(item[field])).getTime() >= new Date(since).getTime()
  const readable = new Set(truth.meetings.filter(after('start_time')).map(({ meeting_id }) => meeting_id))
  const ofReadable = ({ meeting_id }: Fields) => readable.has(meeting_id)
  return {
    ...truth,
    activities: truth.activities.filter(after('occurred_at')),
    unlisted_activities: truth.unlisted_activities.filter(after('occurred_at')),
    messages: truth.messages.filter(after('received_at')),
    access_logs: truth.access_logs.filter(after('occurred_at')),
    meetings: truth.meetings.filter(ofReadable),
    transcripts: truth.transcripts.filter(ofReadable),
    playbook_results: truth.playbook_results.filter(ofReadable),
  }
}

type Plain = Omit<ExpectedTable, 'json' | 'optional'> & Partial<ExpectedTable>
const table = (given: Plain): ExpectedTable => ({ json: [], optional: [], ...given })

const rowsIn = (payload: Fields, list: string): Fields[] => listOf(payload[list]).map(fieldsOf)

// ------------------------------------------------------------------------------------------------ workspace

const MEMBER = shape('id name email role')
const TEAM = shape('id name')
const COLLECTION = shape('id name description visibility created_at:instant updated_at:instant')
const COLLECTION_MEETING = shape('collection_id meeting_id')

function people({ members, teams, collections, collection_meetings }: Truth): ExpectedTable[] {
  return [
    table({ table: 'members', key: ['id'], rows: members.map(payload => rowOf({ shape: MEMBER, payload })) }),
    table({
      table: 'teams',
      key: ['id'],
      rows: teams.map(payload => rowOf({ shape: TEAM, payload, elsewhere: ['member_ids'] })),
    }),
    table({
      table: 'team_members',
      key: ['team_id', 'member_id'],
      parent: { table: 'teams', on: { team_id: 'id' } },
      rows: teams.flatMap(({ id, member_ids }) =>
        listOf(member_ids).map(member => ({ team_id: String(id), member_id: String(member), _extra: null })),
      ),
    }),
    table({
      table: 'collections',
      key: ['id'],
      rows: collections.map(payload => rowOf({ shape: COLLECTION, payload })),
    }),
    table({
      table: 'collection_meetings',
      key: ['collection_id', 'meeting_id'],
      parent: { table: 'collections', on: { collection_id: 'id' } },
      rows: collection_meetings.map(payload => withoutExtra(rowOf({ shape: COLLECTION_MEETING, payload }))),
    }),
  ]
}

/** Child rows of a separate list have only keys. */
function withoutExtra({ _extra, ...row }: Row): Row {
  return row
}

// ------------------------------------------------------------------------------------------------ activities

const ACTIVITY = shape(
  'id type source_type source_id occurred_at:instant created_via actor_kind<actor.kind actor_id<actor.id',
)
const LINK = shape('context_type context_id origin')

function activities({ activities: listed, unlisted_activities: unlisted }: Truth): ExpectedTable[] {
  const row = (payload: Fields): Row => rowOf({ shape: ACTIVITY, payload, elsewhere: ['links'] })
  return [
    table({ table: 'activities', key: ['id'], rows: listed.map(row), optional: unlisted.map(row) }),
    table({
      table: 'activity_links',
      key: ['activity_id', 'context_type', 'context_id', 'origin'],
      parent: { table: 'activities', on: { activity_id: 'id' } },
      rows: listed.flatMap(activity =>
        rowsIn(activity, 'links').map(payload =>
          rowOf({ shape: LINK, payload, given: { activity_id: String(activity['id']) } }),
        ),
      ),
    }),
  ]
}

// ------------------------------------------------------------------------------------------------ meetings

const MEETING = shape(`id<meeting_id url<service_meeting_url workspace_id title platform start_time:instant
  end_time:instant recording_duration:integer base_type recording_source overview_status crm_type
  meeting_type_name transcript_languages:json<transcript_config.languages owner_name<meeting_owner.name
  owner_email<meeting_owner.email`)
const MEETING_LISTS = [
  'meeting_owner.teams',
  'attendees',
  'crm_integrations',
  'related_objects',
  'speakers',
  'summaries',
  'action_items',
]
const MEETING_TEAM = shape('team_id name')
const ATTENDEE = shape(
  'name<attendee_user_name email<attendee_user_email is_workspace_member:boolean is_internal:boolean contact_id',
)
const MEETING_CRM_RECORD = shape('record_id record_name record_url record_object_type')
const RELATED_OBJECT = shape(`object_type object_id display_name is_internal:boolean<fields.is_internal
  company_ids:json<fields.company_ids crm_record_id<sync_crm_object.record_id
  crm_record_name<sync_crm_object.record_name crm_record_url<sync_crm_object.record_url
  crm_record_object_type<sync_crm_object.record_object_type`)
const SPEAKER = shape('speaker_name speaker_ratio:real')
const CHAPTER = shape('title<chapter_title')
const CHAPTER_ITEM = shape('item time:integer')
const ACTION_ITEM = shape('id text detail due_date:day time:integer completed:boolean')
const ENTRY = shape('speaker_id speaker_name contact_id text elapsed_seconds:real')

function meetings(truth: Truth): ExpectedTable[] {
  const spoken = new Map(truth.transcripts.map(({ meeting_id, entries }) => [meeting_id, listOf(entries)]))
  const named = new Set(
    truth.activities.filter(({ source_type }) => source_type === 'MEETING').map(({ source_id }) => source_id),
  )
  const withheld = ({ meeting_id }: Fields): Row => ({
    id: String(meeting_id),
    access: 'withheld',
    transcript_state: 'withheld',
  })
  const parent = { table: 'meetings', on: { meeting_id: 'id' }, open: "p.access = 'open'" }
  const children = (
    name: string,
    key: string[],
    rowsOf: (meeting: Fields, given: Row) => Row[],
    json: string[] = [],
  ) =>
    table({
      table: name,
      key: ['meeting_id', ...key],
      parent,
      json,
      rows: truth.meetings.flatMap(meeting => rowsOf(meeting, { meeting_id: String(meeting['meeting_id']) })),
    })
  const numbered =
    (line: ReturnType<typeof shape>, list: string, elsewhere: string[] = []) =>
    (meeting: Fields, given: Row): Row[] =>
      rowsIn(meeting, list).map((payload, position) =>
        rowOf({ shape: line, payload, given: { ...given, position }, elsewhere }),
      )
  return [
    table({
      table: 'meetings',
      key: ['id'],
      json: ['transcript_languages'],
      rows: [
        ...truth.meetings.map(payload =>
          rowOf({
            shape: MEETING,
            payload,
            elsewhere: MEETING_LISTS,
            given: {
              access: 'open',
              transcript_state: spoken.get(payload['meeting_id'])?.length ? 'present' : 'empty',
            },
          }),
        ),
        ...truth.withheld_meetings.filter(({ meeting_id }) => named.has(meeting_id)).map(withheld),
      ],
      optional: truth.withheld_meetings.map(withheld),
    }),
    children('meeting_owner_teams', ['team_id'], (meeting, given) =>
      rowsIn(fieldsOf(meeting['meeting_owner']), 'teams').map(payload =>
        rowOf({ shape: MEETING_TEAM, payload, given }),
      ),
    ),
    children('meeting_attendees', ['position'], numbered(ATTENDEE, 'attendees', ['teams'])),
    children('meeting_attendee_teams', ['attendee_position', 'team_id'], (meeting, given) =>
      rowsIn(meeting, 'attendees').flatMap((attendee, attendee_position) =>
        rowsIn(attendee, 'teams').map(payload =>
          rowOf({ shape: MEETING_TEAM, payload, given: { ...given, attendee_position } }),
        ),
      ),
    ),
    children('meeting_crm_records', ['position'], numbered(MEETING_CRM_RECORD, 'crm_integrations')),
    children('meeting_related_objects', ['position'], numbered(RELATED_OBJECT, 'related_objects'), [
      'company_ids',
    ]),
    children('meeting_speakers', ['position'], numbered(SPEAKER, 'speakers')),
    children('meeting_chapters', ['position'], numbered(CHAPTER, 'summaries', ['chapter_items'])),
    children('meeting_chapter_items', ['chapter_position', 'position'], (meeting, given) =>
      rowsIn(meeting, 'summaries').flatMap((chapter, chapter_position) =>
        rowsIn(chapter, 'chapter_items').map((payload, position) =>
          rowOf({ shape: CHAPTER_ITEM, payload, given: { ...given, chapter_position, position } }),
        ),
      ),
    ),
    children('meeting_action_items', ['id'], numbered(ACTION_ITEM, 'action_items')),
    ...transcripts(truth, parent),
  ]
}

const TUPLE = ['text', 'start_time', 'end_time']

function transcripts({ transcripts: spoken }: Truth, parent: ExpectedTable['parent']): ExpectedTable[] {
  const tuples = (entry: Fields): Json[][] =>
    rowsIn(entry, 'words').map(word => TUPLE.map(name => word[name] ?? null))
  const entries = spoken.flatMap(({ meeting_id, entries: list }) =>
    listOf(list).map((entry, position) => ({
      meeting: String(meeting_id),
      position,
      entry: fieldsOf(entry),
    })),
  )
  return [
    table({
      table: 'transcript_entries',
      key: ['meeting_id', 'position'],
      json: ['words'],
      ...(parent && { parent }),
      rows: entries.map(({ meeting, position, entry }) =>
        rowOf({
          shape: ENTRY,
          payload: entry,
          elsewhere: ['words'],
          given: { meeting_id: meeting, position, words: canonicalJson(tuples(entry)) },
        }),
      ),
    }),
    table({
      table: 'transcript_words',
      isView: true,
      key: ['meeting_id', 'entry_position', 'position'],
      ...(parent && { parent }),
      rows: entries.flatMap(({ meeting, position, entry }) =>
        tuples(entry).map(([text, start, end], number) => ({
          meeting_id: meeting,
          entry_position: position,
          position: number,
          text: typeof text === 'string' ? text : null,
          start_time: Number(start),
          end_time: Number(end),
        })),
      ),
    }),
  ]
}

// ------------------------------------------------------------------------------------------------ playbooks

const RESULT = shape('id playbook_id playbook_name created_at:instant')
const TALK_POINT_RESULT = shape('id talk_point_id question answer created_at:instant')
const PLAYBOOK = shape('id name active:boolean updated_at:instant')
const TALK_POINT = shape(
  'id question description order:integer target data_type format_style character_limit:integer',
)

function results({ playbook_results: answered }: Truth): ExpectedTable[] {
  const all = answered.flatMap(({ meeting_id, results: list }) =>
    listOf(list).map(result => ({ meeting_id: String(meeting_id), result: fieldsOf(result) })),
  )
  return [
    table({
      table: 'playbook_results',
      key: ['id'],
      rows: all.map(({ meeting_id, result }) =>
        rowOf({ shape: RESULT, payload: result, given: { meeting_id }, elsewhere: ['talk_point_results'] }),
      ),
    }),
    table({
      table: 'talk_point_results',
      key: ['playbook_result_id', 'id'],
      parent: { table: 'playbook_results', on: { playbook_result_id: 'id' } },
      rows: all.flatMap(({ result }) =>
        rowsIn(result, 'talk_point_results').map(payload =>
          rowOf({ shape: TALK_POINT_RESULT, payload, given: { playbook_result_id: String(result['id']) } }),
        ),
      ),
    }),
  ]
}

function playbooks(truth: Truth): ExpectedTable[] {
  const setting = new Map(
    truth.execution_settings.map(each => [each['playbook_id'], each['setting'] ?? null]),
  )
  const row = (payload: Fields): Row =>
    rowOf({
      shape: PLAYBOOK,
      payload,
      elsewhere: ['talk_points'],
      given: { execution_setting: canonicalJson(setting.get(payload['id']) ?? null) },
    })
  const points = (playbook: Fields): Row[] =>
    rowsIn(playbook, 'talk_points').map(payload =>
      rowOf({ shape: TALK_POINT, payload, given: { playbook_id: String(playbook['id']) } }),
    )
  return [
    table({
      table: 'playbooks',
      key: ['id'],
      json: ['execution_setting'],
      rows: truth.playbooks.map(row),
      optional: truth.inactive_playbooks.map(row),
    }),
    table({
      table: 'playbook_talk_points',
      key: ['playbook_id', 'id'],
      parent: { table: 'playbooks', on: { playbook_id: 'id' } },
      rows: truth.playbooks.flatMap(points),
      optional: truth.inactive_playbooks.flatMap(points),
    }),
  ]
}

// ------------------------------------------------------------------------------------------------ CRM

const OBJECT = shape('name name_plural label label_plural is_custom:boolean is_active:boolean')
const FIELD = shape(`name label type is_nullable:boolean is_unique:boolean is_custom:boolean is_active:boolean
  options:json relation_type<relation.type relation_target_object<relation.target_object
  relation_target_resource<relation.target_resource`)
const RECORD = shape(`object id visibility fields:json created_at:instant updated_at:instant
  created_by_kind<created_by.kind created_by_name<created_by.name updated_by_kind<updated_by.kind
  updated_by_name<updated_by.name`)
const RECORD_LINK = shape('object record_id related_object related_id')

function crm({ crm_objects, crm_records, crm_record_links }: Truth): ExpectedTable[] {
  return [
    table({
      table: 'crm_objects',
      key: ['name'],
      rows: crm_objects.map(payload => rowOf({ shape: OBJECT, payload, elsewhere: ['fields'] })),
    }),
    table({
      table: 'crm_fields',
      key: ['object', 'name'],
      json: ['options'],
      parent: { table: 'crm_objects', on: { object: 'name' } },
      rows: crm_objects.flatMap(object =>
        rowsIn(object, 'fields').map((payload, position) =>
          rowOf({ shape: FIELD, payload, given: { object: String(object['name']), position } }),
        ),
      ),
    }),
    table({
      table: 'crm_records',
      key: ['object', 'id'],
      json: ['fields'],
      rows: crm_records.map(payload => rowOf({ shape: RECORD, payload })),
    }),
    table({
      table: 'crm_record_links',
      key: ['object', 'record_id', 'related_object', 'related_id'],
      rows: crm_record_links.map(payload => withoutExtra(rowOf({ shape: RECORD_LINK, payload }))),
    }),
  ]
}

// ------------------------------------------------------------------------------------------------ log and settings

const ACCESS = shape(`occurred_at:instant operation method route path status_code:integer duration_ms:integer
  response_size_bytes:integer api_key_suffix completion`)

/** Entries have no id, so all columns are the key. The comparison numbers equal entries. */
function accessLogs({ access_logs }: Truth): ExpectedTable {
  return table({
    table: 'access_logs',
    key: ACCESS.map(({ column }) => column),
    rows: access_logs.map(payload => rowOf({ shape: ACCESS, payload })),
  })
}

const BOT = shape(`name message_on_join_active:boolean<message_on_join.active
  message_on_join_frequency<message_on_join.frequency message_on_join_message<message_on_join.message`)
const HINT = shape('hint intensity:real language pronunciations:json replacements:json')

function settings({ bot_definition, integrations }: Truth): ExpectedTable[] {
  return [
    table({
      table: 'bot_definition',
      key: ['id'],
      rows: bot_definition.map(payload =>
        rowOf({ shape: BOT, payload, given: { id: 1 }, elsewhere: ['transcription_hints'] }),
      ),
    }),
    table({
      table: 'bot_transcription_hints',
      key: ['position'],
      json: ['pronunciations', 'replacements'],
      parent: { table: 'bot_definition', on: {} },
      rows: bot_definition.flatMap(bot =>
        rowsIn(bot, 'transcription_hints').map((payload, position) =>
          rowOf({ shape: HINT, payload, given: { position } }),
        ),
      ),
    }),
    table({
      table: 'integrations',
      key: ['id'],
      json: ['document'],
      rows: integrations.map(document => ({ id: 1, document: canonicalJson(document), _extra: null })),
    }),
  ]
}
