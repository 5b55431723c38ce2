import { type DescribedTable, described, type Line, MISSING } from './described.ts'

const DEAL: Line = [
  'text',
  'Deal (`crm_records.id`).',
  {
    isKey: true,
    source: 'id',
    refersTo: ['crm_records.id'],
    example: 'c2a1e6b4-0d8e-4f57-9b3a-5e7f1a2b3c4d',
  },
]

const STAGE_ID = 'f5d4b9e7-30b1-4280-8e6d-81a24d5e6f70'
const INSTANT = '2026-03-04T05:06:07.123Z'

/** What a change has and an activity has not, and the other way round. */
const NO_CHANGE = 'It is no change of a field.'
const NO_ACTIVITY = 'It is a change that parley saw, and no activity.'
const NO_MEMBER = 'The system caused it, the member is not known, or it is a change that parley saw.'

const DEAL_VIEWS: readonly DescribedTable[] = [
  described(
    {
      name: 'deal_timeline',
      form: 'view',
      area: 'crm',
      about:
        'What happened around a deal, to be ordered by `at`: its activities, each e-mail once, and the changes that parley saw. Ask for one deal.',
    },
    {
      deal_id: DEAL,
      at: [
        'timestamp',
        'When it happened, or when parley saw the change.',
        { nullMeaning: MISSING, example: INSTANT },
      ],
      kind: [
        'text',
        '`meeting`, `message`, `activity` (another one) or `change` (of a field).',
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
          nullMeaning: 'It has none, it is not known yet, or the meeting is withheld.',
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
        'What it is about: `meetings.id` of a meeting, `message_copies.id` of a message, `crm_records.id` of a change. Whose it is for another activity the API does not state.',
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
        'What it was, as JSON.',
        {
          source: 'fields.*',
          nullMeaning: 'It is no change of a field, or the field was absent.',
          example: '1000000',
        },
      ],
      new_value: [
        'json',
        'What it is since then, as JSON.',
        {
          source: 'fields.*',
          nullMeaning: 'It is no change of a field, or the field is absent.',
          example: '1200000',
        },
      ],
    },
  ),
  described(
    {
      name: 'deal_stage_history',
      form: 'view',
      area: 'crm',
      about:
        'One row per stay of a deal in a stage. Moves are known since parley read the deal for the first time: the stay before the first of them has no beginning. Empty while the fields of the deals are not known.',
    },
    {
      deal_id: DEAL,
      from_stage_id: [
        'text',
        'Stage it came from (`crm_records.id`).',
        { source: 'fields.stage_id', nullMeaning: 'It is the first stay that is known.', example: STAGE_ID },
      ],
      from_stage: [
        'text',
        'Name of that stage.',
        { nullMeaning: 'It is the first stay, or the stage is not known.', example: 'Discovery' },
      ],
      stage_id: [
        'text',
        'Stage (`crm_records.id`).',
        { isKey: true, source: 'fields.stage_id', refersTo: ['crm_records.id'], example: STAGE_ID },
      ],
      stage: ['text', 'Name of the stage.', { nullMeaning: 'The stage is not known.', example: 'Proposal' }],
      entered_at: [
        'timestamp',
        'When parley saw it enter the stage.',
        { nullMeaning: 'It was there when parley first read it.', example: INSTANT },
      ],
      left_at: [
        'timestamp',
        'When parley saw it leave.',
        { nullMeaning: 'It is still there.', example: INSTANT },
      ],
      known_from: [
        'timestamp',
        'Since when the stay is known: `entered_at`, or when the deal was first stored.',
        { isKey: true, example: INSTANT },
      ],
      is_current: ['boolean', '1 for the stage that the deal is in now.', { example: '1' }],
      days: [
        'real',
        'How long it stayed, as far as it is known; until now where it is still there.',
        { unit: 'days', example: '12.5' },
      ],
    },
  ),
]

/** Views over the tables of resources that spare analysts work. A view without its entry here fails a test. */
export const CONVENIENCE_VIEWS: readonly DescribedTable[] = [
  ...DEAL_VIEWS,
  described(
    {
      name: 'transcript_words',
      form: 'view',
      area: 'meetings',
      about:
        'One row per spoken word, unfolded from `transcript_entries.words`. It holds millions of rows in a large warehouse: always ask for one meeting.',
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
        'When it begins, as the API sent it.',
        { source: '[].words[].start_time', unit: 'not stated', nullMeaning: MISSING, example: '1.25' },
      ],
      end_time: [
        'real',
        'When it ends, as the API sent it.',
        { source: '[].words[].end_time', unit: 'not stated', nullMeaning: MISSING, example: '1.5' },
      ],
    },
  ),
]
