import { resource } from '../declare/resource.ts'
import { child, id, NOT_STATED, parent, position, real, text, tuples } from '../declare/table.ts'

const entries = child('transcript_entries', {
  content: true,
  about: 'What was said, in order.',
  list: 'entries',
  key: ['meeting_id', 'position'],
  storage: 'rowid',
  livesWith: { table: 'meetings', on: { meeting_id: 'id' } },
  columns: {
    meeting_id: parent('id', 'text', 'Meeting.', { refersTo: ['meetings.id'] }),
    position: position(),
    speaker_id: id('Id of the speaker within the meeting.'),
    speaker_name: text('Name of the speaker.'),
    contact_id: id('CRM contact (`crm_records.id`).', {
      nullMeans: 'The API gave no contact.',
      refersTo: ['crm_records.id'],
      example: 'e4c3a8d6-2fa0-4179-9d5c-70913c4d5e6f',
    }),
    text: text('What was said.'),
    elapsed_seconds: real('When it was said, counted from the start.', { unit: 'seconds' }),
    words: tuples(
      'Array of `[text, start_time, end_time]`; see the view `transcript_words`.',
      ['text', 'start_time', 'end_time'],
      { unit: NOT_STATED, nullMeans: 'The API gave no words, or `transcripts.words` is off.' },
    ),
  },
})

export const transcriptsResource = resource({
  name: 'transcripts',
  about: 'Transcripts with word timings',
  area: 'meetings',
  parents: ['meetings'],
  readAgainWith: 'meetings',
  tables: [entries.table],
  feeds: {
    read: {
      mode: 'item',
      read: { path: '/v1/meetings/{key}/transcript', placement: 'data' },
      stores: 'transcript',
      partOf: 'meetings.detail',
      table: 'transcript_entries',
      pending: {
        table: 'meetings',
        key: 'id',
        where: "transcript_state = 'pending' AND access = 'open' AND _deleted_at IS NULL",
        time: 'start_time',
      },
      everyRound: false,
      boundBySince: true,
      expected: { 403: 'withheld', 404: 'absent' },
    },
  },
  isSearched: true,
  status: {
    table: 'meetings',
    where: "transcript_state = 'present'",
    newest: 'start_time',
    pending: "transcript_state = 'pending' AND access = 'open'",
    waitsFor: 'transcripts',
    byState: {
      state: "iif(transcript_state = 'pending' AND access = 'withheld', 'withheld', transcript_state)",
      rows: 'meetings',
      part: 'transcript',
    },
  },
  example: {
    read: {
      speaker_id: 'spk_1',
      speaker_name: 'Aiko Tanaka',
      contact_id: null,
      text: 'Good morning',
      elapsed_seconds: 1.25,
      words: [
        { text: 'Good', start_time: 1.25, end_time: 1.5 },
        { text: 'morning', start_time: 1.5, end_time: 2 },
      ],
    },
  },
})
