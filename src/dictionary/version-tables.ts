import { MEMBER_VERSION_TABLE, TEAM_VERSION_TABLE } from '../catalog/bookkeeping/people-versions.ts'
import type { DescribedTable } from './described-table.ts'
import { describedBookkeeping } from './sync-tables.ts'

/** Descriptions of the tables that keep how members, teams and deals were at any time. */

export const PEOPLE_VERSIONS: readonly DescribedTable[] = [
  describedBookkeeping(MEMBER_VERSION_TABLE, { area: 'reports', label: 'name' }),
  describedBookkeeping(TEAM_VERSION_TABLE, { area: 'reports', label: 'team' }),
]
