import { type ColumnLine, column, type DescribedTable, MISSING, tableFromLines } from './described-table.ts'

/** Descriptions of the views for analysts. Their SQL is in `store/views/`. */

const deal = (more: { isKey: boolean }): ColumnLine =>
  column('text', 'Deal (`crm_records.id`).', 'c2a1e6b4-0d8e-4f57-9b3a-5e7f1a2b3c4d', {
    ...more,
    source: 'id',
    refersTo: ['crm_records.id'],
  })

const STAGE_ID = 'f5d4b9e7-30b1-4280-8e6d-81a24d5e6f70'
const INSTANT = '2026-03-04T05:06:07.123Z'

const NO_CHANGE = 'The row is not a field change.'
const NO_ACTIVITY = 'The row is a field change that parley observed, not an activity.'
const NO_MEMBER =
  'The actor is the system, the member is not known, or the row is a field change that parley observed.'

const DEAL_VIEWS: readonly DescribedTable[] = [
  tableFromLines(
    {
      name: 'deal_timeline',
      form: 'view',
      area: 'crm',
      about:
        'The history of a deal: its activities, each e-mail once, and the field changes that parley observed. Order by `at`, and always select one deal.',
      selectBy: 'deal_id',
    },
    {
      deal_id: deal({ isKey: false }),
      at: column('timestamp', 'When it happened, or when parley observed the change.', INSTANT, {
        nullMeaning: MISSING,
      }),
      kind: column(
        'text',
        '`meeting`, `message` (an e-mail that is stored), `activity` (any other activity, and one of an e-mail that is not stored: it may be a copy of one that is) or `change` (of a field).',
        'meeting',
      ),
      type: column('text', 'Kind of activity (`activities.type`).', 'email_sent', {
        source: 'type',
        nullMeaning: NO_ACTIVITY,
      }),
      title: column(
        'text',
        'Title of the meeting, subject of the e-mail, or label of the field.',
        'First call',
        { nullMeaning: 'There is no title, it has not been read yet, or the meeting is withheld.' },
      ),
      actor_id: column('text', 'Who did it (`members.id`).', 'mem_1', {
        source: 'actor.id',
        nullMeaning: NO_MEMBER,
        refersTo: ['members.id'],
      }),
      actor_name: column('text', 'Name of the member.', 'Aiko Tanaka', {
        source: 'name',
        nullMeaning: NO_MEMBER,
      }),
      source_id: column(
        'text',
        'Id of the source: `meetings.id` of a meeting, `message_copies.id` of a message, `crm_records.id` of a change. For other activities the API does not state what it identifies.',
        'mtg_1',
        {
          source: 'source_id',
          nullMeaning: MISSING,
          refersTo: ['meetings.id', 'message_copies.id', 'crm_records.id'],
        },
      ),
      origin: column(
        'text',
        '`DIRECT`: the activity itself points at the deal; `DERIVED`: inferred from another linked record.',
        'DIRECT',
        { source: 'links[].origin', nullMeaning: NO_ACTIVITY },
      ),
      field: column('text', 'Name of the field that changed (`crm_fields.name`).', 'stage_id', {
        nullMeaning: NO_CHANGE,
      }),
      old_value: column('json', 'Previous value, as JSON.', '1000000', {
        source: 'fields.*',
        nullMeaning: 'The row is not a field change, or the field was absent.',
      }),
      new_value: column('json', 'New value, as JSON.', '1200000', {
        source: 'fields.*',
        nullMeaning: 'The row is not a field change, or the field is absent.',
      }),
    },
  ),
  tableFromLines(
    {
      name: 'deal_stage_history',
      form: 'view',
      area: 'crm',
      about:
        'One row per stay of a deal in a stage. Stage changes are known from the first time parley read the deal, so the first known stay has no start. Empty until the fields of deals have been read.',
    },
    {
      deal_id: deal({ isKey: true }),
      from_stage_id: column('text', 'Previous stage (`crm_records.id`).', STAGE_ID, {
        source: 'fields.stage_id',
        nullMeaning: 'This is the first known stay.',
      }),
      from_stage: column('text', 'Name of the previous stage.', 'Discovery', {
        nullMeaning: 'This is the first known stay, or the stage is not known.',
      }),
      stage_id: column('text', 'Stage (`crm_records.id`).', STAGE_ID, {
        isKey: true,
        source: 'fields.stage_id',
        refersTo: ['crm_records.id'],
      }),
      stage: column('text', 'Name of the stage.', 'Proposal', { nullMeaning: 'The stage is not known.' }),
      entered_at: column('timestamp', 'When parley observed the deal entering the stage.', INSTANT, {
        nullMeaning: 'The deal was in this stage when parley first read it.',
      }),
      left_at: column('timestamp', 'When parley observed the deal leaving the stage.', INSTANT, {
        nullMeaning: 'The deal is still in this stage.',
      }),
      known_from: column(
        'timestamp',
        'Start of the known part of the stay: `entered_at`, or when the deal was first stored.',
        INSTANT,
        { isKey: true },
      ),
      is_current: column('boolean', '1 for the stage that the deal is in now.', '1'),
      days: column(
        'real',
        'Length of the known part of the stay. The current stay counts until now.',
        '12.5',
        { unit: 'days' },
      ),
    },
  ),
]

/** Views for convenience over the tables of resources. A test fails where such a view is not described here. */
export const CONVENIENCE_VIEWS: readonly DescribedTable[] = [
  ...DEAL_VIEWS,
  tableFromLines(
    {
      name: 'transcript_words',
      form: 'view',
      area: 'meetings',
      about:
        'One row per spoken word, from `transcript_entries.words`. A large warehouse has millions of rows here: always select one meeting.',
      selectBy: 'meeting_id',
      onDelete: 'row purged',
    },
    {
      meeting_id: column('text', 'Meeting.', 'mtg_1', {
        isKey: true,
        source: 'meeting_id',
        refersTo: ['meetings.id'],
      }),
      entry_position: column('integer', 'Entry (`transcript_entries.position`).', '0', {
        isKey: true,
        source: '[]',
        refersTo: ['transcript_entries.position'],
      }),
      position: column('integer', '0-based index of the word within the entry.', '0', {
        isKey: true,
        source: '[].words[]',
      }),
      text: column('text', 'The word.', 'Good', { source: '[].words[].text', nullMeaning: MISSING }),
      start_time: column('real', 'Start of the word, as sent by the API.', '1.25', {
        source: '[].words[].start_time',
        unit: 'not stated',
        nullMeaning: MISSING,
      }),
      end_time: column('real', 'End of the word, as sent by the API.', '1.5', {
        source: '[].words[].end_time',
        unit: 'not stated',
        nullMeaning: MISSING,
      }),
    },
  ),
]
