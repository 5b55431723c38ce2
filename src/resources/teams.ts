import { resource } from '../declare/resource.ts'
import { child, entity, id, parent, text } from '../declare/table.ts'

const teamMembers = child('team_members', {
  about: 'The members of each team.',
  list: 'member_ids',
  items: 'scalar',
  key: ['team_id', 'member_id'],
  columns: {
    team_id: parent('id', 'text', 'Team.'),
    member_id: id('Member. May be a former member, who is on no list any more.', {
      from: 'value',
      refersTo: ['members.id'],
    }),
  },
  indices: { by_member: { on: ['member_id'] } },
})

const teams = entity('teams', {
  about: 'Teams of the workspace.',
  key: ['id'],
  columns: { id: id('Team id.'), name: text('Team name.', { content: true }) },
  children: [teamMembers],
})

export const teamsResource = resource({
  name: 'teams',
  about: 'Teams and their members',
  area: 'people',
  parents: [],
  tables: [teams],
  feeds: {
    list: {
      mode: 'snapshot',
      list: { path: '/v1/teams', paging: 'v1-page' },
      table: 'teams',
      lists: 'rows',
      keyFields: ['id'],
      evidence: { by: 'single', read: { path: '/v1/teams/{key}', placement: 'data', identity: 'id' } },
    },
  },
  status: { table: 'teams' },
  example: { list: { id: 'team_1', name: 'Sales East', member_ids: ['mem_1', 'mem_2'] } },
})
