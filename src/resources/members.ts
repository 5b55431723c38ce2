import { resource } from '../declare/resource.ts'
import { entity, id, text } from '../declare/table.ts'

const members = entity('members', {
  about: 'Members of the workspace. The API lists only active members.',
  key: ['id'],
  columns: {
    id: id('Member id; `activities.actor_id` and `team_members.member_id` point here.'),
    name: text('Display name.', { content: true }),
    email: text('E-mail address.', { content: true }),
    role: text('Role in the workspace; the API does not state its values.', { isEnumerated: true }),
  },
})

export const membersResource = resource({
  name: 'members',
  about: 'Workspace members',
  area: 'people',
  parents: [],
  tables: [members],
  feeds: {
    list: {
      mode: 'snapshot',
      list: { path: '/v1/members', paging: 'v1-page' },
      table: 'members',
      lists: 'rows',
      keyFields: ['id'],
      evidence: { by: 'second-pass' },
    },
  },
  status: { table: 'members' },
  example: { list: { id: 'mem_1', name: 'Aiko Tanaka', email: 'aiko@example.com', role: 'admin' } },
})
