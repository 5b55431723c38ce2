import { resource } from '../declare/resource.ts'
import { boolean, child, entity, id, integer, own, parent, text, timestamp } from '../declare/table.ts'

const talkPoints = child('playbook_talk_points', {
  about: 'The questions of a playbook.',
  list: 'talk_points',
  key: ['playbook_id', 'id'],
  columns: {
    playbook_id: parent('id', 'text', 'Playbook.'),
    id: id('Question id.'),
    question: text('The question.', { content: true }),
    description: text('Explanation of the question.', { content: true }),
    order: integer('Position of the question within the playbook.'),
    target: text('What the question is asked about. The API does not state its values.', {
      isEnumerated: true,
    }),
    data_type: text('Type of the answer. The API does not state its values.', { isEnumerated: true }),
    format_style: text('Format of the answer. The API does not state its values.', { isEnumerated: true }),
    character_limit: integer('Maximum length of the answer.', { unit: 'characters' }),
  },
})

const playbooks = entity('playbooks', {
  about: 'Templates of questions that are answered for meetings.',
  key: ['id'],
  changedAt: 'updated_at',
  columns: {
    id: id('Playbook id.'),
    name: text('Name of the playbook.', { content: true }),
    active: boolean(
      '1 while in use. The API lists only active playbooks, but inactive ones can still be read.',
    ),
    updated_at: timestamp('When it was last changed.'),
    execution_setting: own('json', 'When the playbook runs automatically, as sent by the API.', {
      content: true,
      nullMeans: 'It has not been read yet, or the API has none.',
      example: '{"mode":"AUTO"}',
    }),
  },
  children: [talkPoints],
})

export const playbooksResource = resource({
  name: 'playbooks',
  about: 'Playbooks, their questions and execution settings',
  area: 'meetings',
  parents: [],
  tables: [playbooks],
  feeds: {
    list: {
      mode: 'snapshot',
      list: { path: '/v1/playbooks', paging: 'any' },
      table: 'playbooks',
      lists: 'keys',
      keyFields: ['id', 'playbook_id'],
      evidence: { by: 'detail' },
    },
    detail: {
      mode: 'item',
      read: { path: '/v1/playbooks/{key}', placement: 'data', identity: 'id' },
      stores: 'row',
      table: 'playbooks',
      everyRound: true,
      boundBySince: false,
      followUps: [
        {
          on: ['inserted', 'revived'],
          feed: 'playbooks.execution_setting',
          key: 'id',
          sort: 'updated_at',
          how: 'demand',
        },
      ],
      expected: { 404: 'absent' },
    },
    execution_setting: {
      mode: 'item',
      read: { path: '/v1/playbooks/{key}/execution-setting', placement: 'either' },
      stores: 'setting',
      table: 'playbooks',
      everyRound: true,
      boundBySince: false,
      expected: { 403: 'absent', 404: 'absent' },
    },
  },
  status: { table: 'playbooks', newest: 'updated_at' },
  example: {
    list: { id: 'pb_1', name: 'Discovery' },
    detail: {
      id: 'pb_1',
      name: 'Discovery',
      active: true,
      updated_at: '2026-01-01T00:00:00Z',
      talk_points: [
        {
          id: 'tp_1',
          question: 'Is there a budget?',
          description: 'Ask early',
          order: 1,
          target: 'MEETING',
          data_type: 'TEXT',
          format_style: 'PLAIN',
          character_limit: 400,
        },
      ],
    },
    execution_setting: { mode: 'AUTO', conditions: [{ meeting_type: 'Discovery' }] },
  },
})
