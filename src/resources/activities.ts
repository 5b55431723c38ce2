import { resource } from '../declare/resource.ts'
import { child, entity, id, meaningsOf, oneOf, parent, text, timestamp } from '../declare/table.ts'

const CONTEXTS = ['company', 'contact', 'deal']
const SOURCES = ['MEETING', 'MESSAGE', 'OBJECT_CHANGE_EVENT']
const ACTORS = ['member', 'system']

const ORIGINS = {
  DIRECT: 'the activity itself points at the record',
  DERIVED: 'inferred from another linked record',
}

const activityLinks = child('activity_links', {
  about: 'The public company, contact and deal records that an activity belongs to.',
  list: 'links',
  key: ['activity_id', 'context_type', 'context_id', 'origin'],
  columns: {
    activity_id: parent('id', 'text', 'Activity.'),
    context_type: text(`${oneOf(CONTEXTS)}.`, { values: CONTEXTS }),
    context_id: id('Id of the CRM record (`crm_records.id`).', { refersTo: ['crm_records.id'] }),
    origin: text(`${meaningsOf(ORIGINS)}.`, { values: Object.keys(ORIGINS) }),
  },
  indices: { by_context: { on: ['context_type', 'context_id'] } },
})

const activities = entity('activities', {
  about: 'The timeline of the workspace: meetings, messages and changes to CRM records.',
  key: ['id'],
  storage: 'rowid',
  columns: {
    id: id('Activity id.'),
    type: text('Kind of activity; the API does not state its values.', { isEnumerated: true }),
    source_type: text(`${oneOf(SOURCES)}.`, { values: SOURCES }),
    source_id: id(
      'Id of the originating record: `meetings.id` for MEETING, `message_copies.id` for MESSAGE. For OBJECT_CHANGE_EVENT the API does not state what it identifies.',
      { refersTo: ['meetings.id', 'message_copies.id'] },
    ),
    occurred_at: timestamp('When it happened.'),
    created_via: text('How it was created. The API does not state its values.', {
      isEnumerated: true,
      nullMeans: 'The API could not obtain it.',
      example: 'EMAIL_SYNC',
    }),
    actor_kind: text(`${oneOf(ACTORS)}.`, {
      values: ACTORS,
      from: 'actor.kind',
      nullMeans: 'The API gives no actor.',
    }),
    actor_id: id('`members.id` when the actor is a member.', {
      from: 'actor.id',
      nullMeans: 'The actor is the system, or the API could not resolve the member.',
      refersTo: ['members.id'],
    }),
  },
  indices: {
    by_time: { on: ['occurred_at DESC', '_deleted_at'] },
    by_source: { on: ['source_id'] },
  },
  children: [activityLinks],
})

/** The CRM records that an activity links to. */
const LINKED_RECORDS = { child: 'activity_links', object: 'context_type', key: 'context_id' }

export const activitiesResource = resource({
  name: 'activities',
  about: 'The timeline of meetings, messages and CRM changes',
  area: 'timeline',
  parents: [],
  tables: [activities],
  feeds: {
    list: {
      mode: 'timeline',
      list: { path: '/v2/activities', paging: 'v2-cursor' },
      table: 'activities',
      time: 'occurred_at',
      bounds: { from: 'occurred_from', to: 'occurred_to' },
      followUps: [
        {
          on: ['inserted', 'changed', 'revived'],
          when: { source_type: ['MEETING'] },
          feed: 'meetings.detail',
          key: 'source_id',
          sort: 'occurred_at',
          how: 'add',
        },
        {
          on: ['inserted', 'changed', 'revived'],
          when: { source_type: ['OBJECT_CHANGE_EVENT'] },
          records: { ...LINKED_RECORDS, prefer: { origin: 'DIRECT' } },
          at: 'occurred_at',
          feed: 'crm_records.list',
        },
        {
          // Most activities link records whose association is already stored. No request is needed for these records.
          on: ['inserted', 'changed', 'revived'],
          records: { ...LINKED_RECORDS, unassociatedOnly: true },
          at: 'occurred_at',
          feed: 'crm_record_links.read',
        },
      ],
      evidence: {
        by: 'single',
        read: { path: '/v2/activities/{key}', placement: 'either', identity: 'id' },
      },
    },
  },
  status: { table: 'activities', newest: 'occurred_at' },
  example: {
    list: {
      id: '0b6c1f0e-6f43-4b4e-9a51-0a4d9f3c1a01',
      type: 'email_sent',
      source_type: 'MESSAGE',
      source_id: '5d1c7f8e-2b1a-4f0c-8d3e-9a0b1c2d3e4f',
      occurred_at: '2026-03-04T05:06:07.123Z',
      created_via: null,
      actor: { kind: 'member', id: 'mem_1' },
      links: [
        { context_type: 'deal', context_id: 'c2a1e6b4-0d8e-4f57-9b3a-5e7f1a2b3c4d', origin: 'DIRECT' },
        { context_type: 'company', context_id: 'd3b2f7c5-1e9f-4068-8c4b-6f802b3c4d5e', origin: 'DERIVED' },
      ],
    },
  },
})
