import { bookkeepingTable } from './table-declaration.ts'

/**
 * Members and teams as they were at any time. The API no longer returns members who have left, so these rows cannot be
 * computed again: `store/reporting/people-versions.ts` writes them in the transaction that changes a member or a team.
 */

const FROM = {
  kind: 'timestamp',
  about: 'When it began: when parley read it.',
  onDelete: 'kept',
  example: '2026-03-04T05:06:07.123Z',
} as const
const TO = {
  kind: 'timestamp',
  about: 'When the next version began, or this one ended.',
  nullMeans: 'It is the present one.',
  onDelete: 'set',
  example: '2026-05-06T07:08:09.123Z',
} as const

export const MEMBER_VERSION_TABLE = bookkeepingTable({
  name: 'member_versions',
  about:
    'One member between two changes: the name, the address, and whether the person was a member. The versions of a member leave no gap. In a file of an earlier version of parley, the first version is the state at the upgrade.',
  columns: {
    member_id: {
      kind: 'text',
      about: 'Member.',
      refersTo: ['members.id'],
      onDelete: 'kept',
      example: 'mem_1',
    },
    from_at: FROM,
    to_at: TO,
    name: {
      kind: 'text',
      about: 'Display name; of a former member the last one.',
      nullMeans: 'The API sent none, or it was purged.',
      onDelete: 'purged',
      example: 'Aiko Tanaka',
    },
    email: {
      kind: 'text',
      about: 'E-mail address; of a former member the last one.',
      nullMeans: 'The API sent none, or it was purged.',
      onDelete: 'purged',
      example: 'aiko@example.com',
    },
    is_member: {
      kind: 'boolean',
      notNull: true,
      about: '0 while the API did not publish the person as a member.',
      onDelete: 'kept',
      example: '1',
    },
  },
  key: ['member_id', 'from_at'],
  storage: 'clustered',
})

export const TEAM_VERSION_TABLE = bookkeepingTable({
  name: 'team_versions',
  about:
    'One member in a team between two changes. A member who leaves the team, a team that is deleted, and a new name of the team end a version. The team may still name a member who has left the workspace: see `member_versions`.',
  columns: {
    team_id: { kind: 'text', about: 'Team.', refersTo: ['teams.id'], onDelete: 'kept', example: 'team_1' },
    member_id: {
      kind: 'text',
      about: 'Member of the team.',
      refersTo: ['members.id'],
      onDelete: 'kept',
      example: 'mem_1',
    },
    from_at: FROM,
    to_at: TO,
    team: {
      kind: 'text',
      about: 'Name of the team.',
      nullMeans: 'The API sent none, or it was purged.',
      onDelete: 'purged',
      example: 'Sales East',
    },
  },
  key: ['team_id', 'member_id', 'from_at'],
  storage: 'clustered',
})
