import { resource } from '../declare/resource.ts'
import {
  boolean,
  child,
  date,
  entity,
  id,
  integer,
  json,
  NOT_STATED,
  oneOf,
  own,
  parent,
  position,
  real,
  text,
  timestamp,
} from '../declare/table.ts'

const TRANSCRIPT_STATES = {
  pending: 'no answer yet',
  present: '',
  empty: 'the last answer was an empty list',
  withheld: '403',
  gone: '404',
}

const meetingId = parent('id', 'text', 'Meeting.')

const ownerTeams = child('meeting_owner_teams', {
  about: 'Teams of the meeting’s owner.',
  list: 'meeting_owner.teams',
  key: ['meeting_id', 'team_id'],
  columns: {
    meeting_id: meetingId,
    team_id: id('Team.', { refersTo: ['teams.id'] }),
    name: text('Team name at that time.', { content: true }),
  },
})

const attendeeTeams = child('meeting_attendee_teams', {
  content: true,
  about: 'Teams of the attendees who are members.',
  list: 'teams',
  key: ['meeting_id', 'attendee_position', 'team_id'],
  columns: {
    meeting_id: parent('meeting_id', 'text', 'Meeting.'),
    attendee_position: parent('position', 'integer', 'Attendee (`meeting_attendees.position`).'),
    team_id: id('Team.', { refersTo: ['teams.id'] }),
    name: text('Team name at that time.', { content: true }),
  },
})

const attendees = child('meeting_attendees', {
  content: true,
  about: 'People who took part in the meeting.',
  list: 'attendees',
  key: ['meeting_id', 'position'],
  columns: {
    meeting_id: meetingId,
    position: position(),
    name: text('Name of the person.', { from: 'attendee_user_name' }),
    email: text('E-mail address.', { from: 'attendee_user_email' }),
    is_workspace_member: boolean('1 for members of the workspace.'),
    is_internal: boolean("1 for people of the workspace's organisation."),
    contact_id: id('CRM contact (`crm_records.id`).', {
      nullMeans: 'The API gave no contact.',
      refersTo: ['crm_records.id'],
      example: 'e4c3a8d6-2fa0-4179-9d5c-70913c4d5e6f',
    }),
  },
  children: [attendeeTeams],
  indices: { by_email: { on: ['email'] } },
})

const crmRecords = child('meeting_crm_records', {
  about: 'CRM records that the meeting is linked to.',
  list: 'crm_integrations',
  key: ['meeting_id', 'position'],
  columns: {
    meeting_id: meetingId,
    position: position(),
    record_id: text('Id in the CRM itself. The API does not state that it is a `crm_records.id`.'),
    record_name: text('Name of the record.', { content: true }),
    record_url: text('Link to the record in the CRM.', { content: true }),
    record_object_type: text('Type of the record in the CRM, such as `Opportunity`.', { isEnumerated: true }),
  },
})

const relatedObjects = child('meeting_related_objects', {
  about: 'Companies, contacts and deals that the meeting belongs to.',
  list: 'related_objects',
  key: ['meeting_id', 'position'],
  columns: {
    meeting_id: meetingId,
    position: position(),
    object_type: text('Type of the object, such as `company`.', { isEnumerated: true }),
    object_id: id('Id of the object (`crm_records.id`).', { refersTo: ['crm_records.id'] }),
    display_name: text('Name of the object.', { content: true }),
    is_internal: boolean("1 for an object of the workspace's organisation.", { from: 'fields.is_internal' }),
    company_ids: json('Ids of the companies that the object belongs to.', {
      hasIds: true,
      from: 'fields.company_ids',
    }),
    crm_record_id: text('Id of the record in the CRM itself, as in `meeting_crm_records`.', {
      from: 'sync_crm_object.record_id',
    }),
    crm_record_name: text('Name of that record.', { from: 'sync_crm_object.record_name', content: true }),
    crm_record_url: text('Link to that record in the CRM.', {
      from: 'sync_crm_object.record_url',
      content: true,
    }),
    crm_record_object_type: text('Type of that record in the CRM, such as `Account`.', {
      isEnumerated: true,
      from: 'sync_crm_object.record_object_type',
    }),
  },
  indices: { by_object: { on: ['object_id'] } },
})

const speakers = child('meeting_speakers', {
  content: true,
  about: 'How much each person spoke.',
  list: 'speakers',
  key: ['meeting_id', 'position'],
  columns: {
    meeting_id: meetingId,
    position: position(),
    speaker_name: text('Name of the person.'),
    speaker_ratio: real('Share of the talking time.', { unit: NOT_STATED }),
  },
})

const chapterItems = child('meeting_chapter_items', {
  content: true,
  about: 'The points of each summary chapter.',
  list: 'chapter_items',
  key: ['meeting_id', 'chapter_position', 'position'],
  columns: {
    meeting_id: parent('meeting_id', 'text', 'Meeting.'),
    chapter_position: parent('position', 'integer', 'Chapter (`meeting_chapters.position`).'),
    position: position(),
    item: text('The point, as a sentence.'),
    time: integer('Position of the point in the meeting.', { unit: NOT_STATED }),
  },
})

const chapters = child('meeting_chapters', {
  content: true,
  about: 'Chapters of the generated summary.',
  list: 'summaries',
  key: ['meeting_id', 'position'],
  columns: {
    meeting_id: meetingId,
    position: position(),
    title: text('Title of the chapter.', { from: 'chapter_title' }),
  },
  children: [chapterItems],
})

const actionItems = child('meeting_action_items', {
  content: true,
  about: 'Tasks that were agreed on in the meeting.',
  list: 'action_items',
  key: ['meeting_id', 'id'],
  columns: {
    meeting_id: meetingId,
    id: id('Action item id.'),
    position: position(),
    text: text('The task.'),
    detail: text('Details of the task.'),
    due_date: date('Due date.'),
    time: integer('Position of the action item in the meeting.', { unit: NOT_STATED }),
    completed: boolean('1 when completed.'),
  },
})

const meetings = entity('meetings', {
  about:
    'Recorded meetings. A meeting that the API withholds (`access`) has only the values that were read before, possibly only its id.',
  nullMeans: 'The API sent null or nothing, or no detail of the meeting (`access`).',
  cascades: [{ table: 'playbook_results', on: { meeting_id: 'id' }, blocksInserts: true }],
  openWhen: "access = 'open'",
  key: ['id'],
  storage: 'rowid',
  columns: {
    id: id('Meeting id.', { from: 'meeting_id' }),
    url: text('Link to the meeting in the product.', { from: 'service_meeting_url', content: true }),
    workspace_id: id('Id of the workspace; the same in every row.'),
    title: text('Title.', { content: true }),
    platform: text('Conferencing platform.', { isEnumerated: true }),
    start_time: timestamp('When the meeting started.'),
    end_time: timestamp('When the meeting ended.'),
    recording_duration: integer('Length of the recording.', { unit: NOT_STATED }),
    base_type: text('Type of meeting. The API does not state its values.', { isEnumerated: true }),
    recording_source: text('Source of the recording. The API does not state its values.', {
      isEnumerated: true,
    }),
    overview_status: text(
      'State of summaries and action items: `COMPLETED` when they are ready. The API does not state its other values.',
      { isEnumerated: true },
    ),
    crm_type: text('Type of the linked CRM. The API does not state its values.', { isEnumerated: true }),
    meeting_type_name: text('Type of meeting as the workspace names it.', { content: true }),
    transcript_languages: json('Language codes of the transcript.', { from: 'transcript_config.languages' }),
    owner_name: text('Name of the owner.', { from: 'meeting_owner.name', content: true }),
    owner_email: text('E-mail address of the owner.', { from: 'meeting_owner.email', content: true }),
    access: own('text', '`open`, or `withheld` when the API answers 403.', {
      values: ['open', 'withheld'],
      nullMeans: 'Its detail has not been read yet.',
      example: 'open',
    }),
    transcript_state: own('text', `${oneOf(TRANSCRIPT_STATES)}.`, {
      values: Object.keys(TRANSCRIPT_STATES),
      notNull: true,
      default: "'pending'",
      example: 'present',
      whenPurged: "iif(access = 'withheld', 'withheld', 'pending')",
    }),
  },
  indices: {
    by_time: { on: ['start_time'] },
    transcript_pending: { on: ['start_time'], where: "transcript_state = 'pending'" },
  },
  children: [ownerTeams, attendees, crmRecords, relatedObjects, speakers, chapters, actionItems],
})

export const meetingsResource = resource({
  name: 'meetings',
  about: 'Meetings with attendees, summaries, action items and CRM links',
  area: 'meetings',
  // A new activity names its meeting at once, so the meeting is read without the list. No activity names a meeting
  // without a public CRM record: only the list has these meetings.
  parents: ['activities'],
  tables: [meetings],
  feeds: {
    list: {
      mode: 'snapshot',
      list: { path: '/v1/meetings', paging: 'any' },
      table: 'meetings',
      lists: 'keys',
      keyFields: ['meeting_id', 'id'],
      timeField: 'start_time',
      // Every hour, since only this list shows new meetings without a public CRM record.
      intervalMs: 3_600_000,
      evidence: { by: 'detail' },
    },
    detail: {
      mode: 'item',
      read: { path: '/v1/meetings/{key}', placement: 'data', identity: 'meeting_id' },
      stores: 'row',
      table: 'meetings',
      everyRound: true,
      boundBySince: true,
      readyWhen: { column: 'overview_status', is: 'COMPLETED' },
      time: 'start_time',
      followUps: [
        {
          on: ['inserted', 'changed', 'revived'],
          when: { overview_status: ['COMPLETED'] },
          feed: 'playbook_results.read',
          key: 'id',
          sort: 'start_time',
          how: 'demand',
        },
        {
          on: ['changed', 'revived'],
          when: { transcript_state: ['present', 'empty', 'withheld', 'gone'] },
          feed: 'transcripts.read',
          key: 'id',
          sort: 'start_time',
          how: 'demand',
        },
      ],
      expected: { 403: 'withheld', 404: 'absent' },
    },
  },
  isSearched: true,
  status: { table: 'meetings', newest: 'start_time', waitsFor: 'details or summaries' },
  example: {
    list: { meeting_id: 'mtg_1', title: 'First call' },
    detail: {
      meeting_id: 'mtg_1',
      service_meeting_url: 'https://app.example.com/meetings/mtg_1',
      workspace_id: 'ws_1',
      title: 'First call',
      platform: 'zoom',
      start_time: '2026-03-04T05:00:00Z',
      end_time: '2026-03-04T05:45:00Z',
      recording_duration: 2700,
      base_type: 'ONLINE',
      recording_source: 'BOT',
      overview_status: 'COMPLETED',
      crm_type: 'salesforce',
      meeting_type_name: 'Discovery',
      transcript_config: { languages: ['ja', 'en'] },
      meeting_owner: {
        name: 'Aiko Tanaka',
        email: 'aiko@example.com',
        teams: [{ team_id: 'team_1', name: 'Sales East' }],
      },
      attendees: [
        {
          attendee_user_name: 'Aiko Tanaka',
          attendee_user_email: 'aiko@example.com',
          is_workspace_member: true,
          is_internal: true,
          teams: [{ team_id: 'team_1', name: 'Sales East' }],
          contact_id: null,
        },
      ],
      crm_integrations: [
        {
          record_id: '006A',
          record_name: 'Acme renewal',
          record_url: 'https://crm.example.com/006A',
          record_object_type: 'Opportunity',
        },
      ],
      related_objects: [
        {
          display_name: 'Acme',
          object_id: 'd3b2f7c5-1e9f-4068-8c4b-6f802b3c4d5e',
          object_type: 'company',
          fields: { company_ids: ['d3b2f7c5-1e9f-4068-8c4b-6f802b3c4d5e'], is_internal: false },
          sync_crm_object: {
            record_id: '001A',
            record_name: 'Acme',
            record_url: 'https://crm.example.com/001A',
            record_object_type: 'Account',
          },
        },
      ],
      speakers: [{ speaker_name: 'Aiko Tanaka', speaker_ratio: 0.61 }],
      summaries: [{ chapter_title: 'Budget', chapter_items: [{ item: 'Budget is approved', time: 120 }] }],
      action_items: [
        {
          id: 'act_1',
          text: 'Send the offer',
          detail: 'With three options',
          due_date: '2026-03-11',
          time: 2400,
          completed: false,
        },
      ],
    },
  },
})
