import { type ColumnLine, type DescribedTable, MISSING, tableFromLines } from './described-table.ts'

/** Descriptions of the views for analysts. Their SQL is in `store/views/`. */

const deal = (more: { isKey: boolean }): ColumnLine => [
  'text',
  'Deal (`crm_records.id`).',
  {
    ...more,
    source: 'id',
    refersTo: ['crm_records.id'],
    example: 'c2a1e6b4-0d8e-4f57-9b3a-5e7f1a2b3c4d',
  },
]

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
      at: [
        'timestamp',
        'When it happened, or when parley observed the change.',
        { nullMeaning: MISSING, example: INSTANT },
      ],
      kind: [
        'text',
        '`meeting`, `message` (an e-mail that is stored), `activity` (any other activity, and one of an e-mail that is not stored: it may be a copy of one that is) or `change` (of a field).',
        { example: 'meeting' },
      ],
      type: [
        'text',
        'Kind of activity (`activities.type`).',
        { source: 'type', nullMeaning: NO_ACTIVITY, example: 'email_sent' },
      ],
      title: [
        'text',
        'Title of the meeting, subject of the e-mail, or label of the field.',
        {
          nullMeaning: 'There is no title, it has not been read yet, or the meeting is withheld.',
          example: 'First call',
        },
      ],
      actor_id: [
        'text',
        'Who did it (`members.id`).',
        {
          source: 'actor.id',
          nullMeaning: NO_MEMBER,
          refersTo: ['members.id'],
          example: 'mem_1',
        },
      ],
      actor_name: [
        'text',
        'Name of the member.',
        {
          source: 'name',
          nullMeaning: NO_MEMBER,
          example: 'Aiko Tanaka',
        },
      ],
      source_id: [
        'text',
        'Id of the source: `meetings.id` of a meeting, `message_copies.id` of a message, `crm_records.id` of a change. For other activities the API does not state what it identifies.',
        {
          source: 'source_id',
          nullMeaning: MISSING,
          refersTo: ['meetings.id', 'message_copies.id', 'crm_records.id'],
          example: 'mtg_1',
        },
      ],
      origin: [
        'text',
        '`DIRECT`: the activity itself points at the deal; `DERIVED`: inferred from another linked record.',
        { source: 'links[].origin', nullMeaning: NO_ACTIVITY, example: 'DIRECT' },
      ],
      field: [
        'text',
        'Name of the field that changed (`crm_fields.name`).',
        { nullMeaning: NO_CHANGE, example: 'stage_id' },
      ],
      old_value: [
        'json',
        'Previous value, as JSON.',
        {
          source: 'fields.*',
          nullMeaning: 'The row is not a field change, or the field was absent.',
          example: '1000000',
        },
      ],
      new_value: [
        'json',
        'New value, as JSON.',
        {
          source: 'fields.*',
          nullMeaning: 'The row is not a field change, or the field is absent.',
          example: '1200000',
        },
      ],
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
      from_stage_id: [
        'text',
        'Previous stage (`crm_records.id`).',
        { source: 'fields.stage_id', nullMeaning: 'This is the first known stay.', example: STAGE_ID },
      ],
      from_stage: [
        'text',
        'Name of the previous stage.',
        { nullMeaning: 'This is the first known stay, or the stage is not known.', example: 'Discovery' },
      ],
      stage_id: [
        'text',
        'Stage (`crm_records.id`).',
        { isKey: true, source: 'fields.stage_id', refersTo: ['crm_records.id'], example: STAGE_ID },
      ],
      stage: ['text', 'Name of the stage.', { nullMeaning: 'The stage is not known.', example: 'Proposal' }],
      entered_at: [
        'timestamp',
        'When parley observed the deal entering the stage.',
        { nullMeaning: 'The deal was in this stage when parley first read it.', example: INSTANT },
      ],
      left_at: [
        'timestamp',
        'When parley observed the deal leaving the stage.',
        { nullMeaning: 'The deal is still in this stage.', example: INSTANT },
      ],
      known_from: [
        'timestamp',
        'Start of the known part of the stay: `entered_at`, or when the deal was first stored.',
        { isKey: true, example: INSTANT },
      ],
      is_current: ['boolean', '1 for the stage that the deal is in now.', { example: '1' }],
      days: [
        'real',
        'Length of the known part of the stay. The current stay counts until now.',
        { unit: 'days', example: '12.5' },
      ],
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
      meeting_id: [
        'text',
        'Meeting.',
        { isKey: true, source: 'meeting_id', refersTo: ['meetings.id'], example: 'mtg_1' },
      ],
      entry_position: [
        'integer',
        'Entry (`transcript_entries.position`).',
        { isKey: true, source: '[]', refersTo: ['transcript_entries.position'], example: '0' },
      ],
      position: [
        'integer',
        '0-based index of the word within the entry.',
        { isKey: true, source: '[].words[]', example: '0' },
      ],
      text: ['text', 'The word.', { source: '[].words[].text', nullMeaning: MISSING, example: 'Good' }],
      start_time: [
        'real',
        'Start of the word, as sent by the API.',
        { source: '[].words[].start_time', unit: 'not stated', nullMeaning: MISSING, example: '1.25' },
      ],
      end_time: [
        'real',
        'End of the word, as sent by the API.',
        { source: '[].words[].end_time', unit: 'not stated', nullMeaning: MISSING, example: '1.5' },
      ],
    },
  ),
]
