import { resource } from '../declare/resource.ts'
import { child, entity, id, parent, requestKey, text, timestamp } from '../declare/table.ts'

const talkPointResults = child('talk_point_results', {
  content: true,
  about: 'The answers to the questions of a playbook.',
  list: 'talk_point_results',
  key: ['playbook_result_id', 'id'],
  columns: {
    playbook_result_id: parent('id', 'text', 'Result.'),
    id: id('Id of the answer.'),
    talk_point_id: id('Question (`playbook_talk_points.id`).', { refersTo: ['playbook_talk_points.id'] }),
    question: text('The question at that time.'),
    answer: text('The answer from the meeting.'),
    created_at: timestamp('When the answer was created.'),
  },
})

const playbookResults = entity('playbook_results', {
  about: 'The latest result of each playbook for each meeting.',
  key: ['id'],
  columns: {
    id: id('Result id.'),
    meeting_id: requestKey('Meeting.', {
      hasIds: true,
      from: 'meeting_id',
      refersTo: ['meetings.id'],
      example: 'mtg_1',
    }),
    playbook_id: id('Playbook.', { refersTo: ['playbooks.id'] }),
    playbook_name: text('Name of the playbook at that time.', { content: true }),
    created_at: timestamp('When the result was created.'),
  },
  children: [talkPointResults],
  indices: { by_meeting: { on: ['meeting_id'] } },
})

export const playbookResultsResource = resource({
  name: 'playbook_results',
  about: 'Playbook results of meetings',
  area: 'meetings',
  parents: ['meetings'],
  readAgainWith: 'meetings',
  tables: [playbookResults],
  feeds: {
    read: {
      mode: 'item',
      read: { path: '/v1/meetings/{key}/playbook-results', placement: 'data' },
      stores: 'results',
      partOf: 'meetings.detail',
      table: 'playbook_results',
      everyRound: true,
      boundBySince: true,
      // The list of playbooks leaves out inactive ones, but their results stay and their details can be read.
      followUps: [{ on: ['inserted', 'revived'], feed: 'playbooks.detail', key: 'playbook_id', how: 'add' }],
      expected: { 403: 'withheld', 404: 'absent' },
    },
  },
  readsWithoutFeed: [
    {
      path: '/v1/meetings/{meeting}/playbook-results/{playbookRun}',
      placement: 'data',
      table: 'playbook_results',
      idFields: ['playbook_id'],
      expected: { 403: 'withheld', 404: 'absent' },
    },
  ],
  status: { table: 'playbook_results', newest: 'created_at', waitsFor: 'results of meetings' },
  example: {
    read: {
      id: 'res_1',
      playbook_id: 'pb_1',
      playbook_name: 'Discovery',
      created_at: '2026-03-04T06:00:00Z',
      talk_point_results: [
        {
          id: 'tpr_1',
          talk_point_id: 'tp_1',
          question: 'Is there a budget?',
          answer: 'Yes',
          created_at: '2026-03-04T06:00:00Z',
        },
      ],
    },
  },
})
