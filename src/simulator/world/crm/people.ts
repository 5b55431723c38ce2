import { createItems, type Items } from '../../base/items.ts'
import { at, mix, mixBelow } from '../../base/random.ts'
import { quote, SALT, type Scene } from '../../base/scene.ts'
import { FREE_MAIL_DOMAINS, personName } from '../../content/people.ts'

export const WORKSPACE_DOMAIN = 'parley-demo.example'
const ROLES = ['ADMIN', 'MANAGER', 'MEMBER', 'MEMBER', 'MEMBER', 'VIEWER'] as const
const TEAM_NAMES = [
  'Sales EMEA',
  'Sales Japan',
  'Customer success',
  'Solutions',
  'Partnerships',
  'エンタープライズ営業',
  'SDR',
]
const NEW_FAMILY_NAMES = ['Stone', 'Rivera', 'Holm', 'Okada', 'Lang'] as const

export interface People {
  members: Items
  teams: Items
  /** The name at the time of the messages and meetings: a later change of name does not alter them. */
  originalName(member: number): string
  memberEmail(index: number): string
  memberJson(index: number): string
  /** Published members in list order: by name, then by id. */
  memberOrder(): number[]
  teamJson(index: number): string
  teamOrder(): number[]
  /** The team of a member at the time of the meetings. */
  originalTeam(member: number): { team_id: string; name: string } | undefined
}

/** The member of a realistic workspace who uses a private address. */
const PRIVATE_MEMBER = 6

export function createPeople({ seed, sizes, isRealistic }: Scene): People {
  const members = createItems({
    seed,
    salt: SALT.member,
    shape: 'uuid',
    count: sizes.members,
    // Some members have left. The first member has not, so at least one is published at the start.
    initial: index => (index % 9 === 8 ? 'hidden' : 'published'),
  })
  const teams = createItems({ seed, salt: SALT.team, shape: 'hex16', count: sizes.teams })
  const originalName = (index: number): string => personName(seed, SALT.member + 10, index).name
  const memberName = (index: number): string => {
    const revision = members.revision(index)
    const name = originalName(index)
    return revision === 0 ? name : `${name}-${at(NEW_FAMILY_NAMES, revision - 1)}`
  }
  const memberEmail = (index: number): string => {
    const { local } = personName(seed, SALT.member + 10, index)
    if (isRealistic && index === PRIVATE_MEMBER) return `${local}.${index + 1}@${FREE_MAIL_DOMAINS[0]}`
    return `${local}${index > 0 && index % 5 === 0 ? index : ''}.${index + 1}@${WORKSPACE_DOMAIN}`
  }
  const teamName = (index: number): string => {
    const number = Math.floor(index / TEAM_NAMES.length)
    const revision = teams.revision(index)
    return `${at(TEAM_NAMES, index)}${number > 0 ? ` ${number + 1}` : ''}${revision > 0 ? ` (${2025 + revision})` : ''}`
  }
  const belongs = (member: number, team: number): boolean =>
    mixBelow(seed, SALT.team + 10, member, Math.max(1, sizes.teams)) === team ||
    mixBelow(seed, SALT.team + 11 + teams.revision(team), member * 1_009 + team, 9) === 0

  return {
    members,
    teams,
    originalName,
    memberEmail,
    memberJson: index => {
      const role = at(ROLES, mix(seed, SALT.member + 20, index) + members.revision(index))
      const extra = index % 7 === 3 ? ',"locale":"ja-JP"' : ''
      return `{"id":"${members.ids.of(index)}","name":${quote(memberName(index))},"email":${quote(memberEmail(index))},"role":"${role}"${extra}}`
    },
    memberOrder: () => byName(members, memberName),
    teamJson: index => {
      const ids = published(members)
        .filter(member => belongs(member, index))
        .map(member => members.ids.of(member))
      return JSON.stringify({ id: teams.ids.of(index), name: teamName(index), member_ids: ids })
    },
    teamOrder: () => byName(teams, teamName),
    originalTeam: member => {
      if (sizes.teams === 0) return undefined
      const team = mixBelow(seed, SALT.team + 10, member, sizes.teams)
      return { team_id: teams.ids.of(team), name: at(TEAM_NAMES, team) }
    },
  }
}

export function published(items: Items): number[] {
  const found: number[] = []
  for (let index = 0; index < items.count(); index++) if (items.isPublished(index)) found.push(index)
  return found
}

function byName(items: Items, name: (index: number) => string): number[] {
  const rows = published(items).map(index => ({ index, name: name(index), id: items.ids.of(index) }))
  rows.sort((a, b) => compare(a.name, b.name) || compare(a.id, b.id))
  return rows.map(row => row.index)
}

export function compare<T extends string | number>(a: T, b: T): number {
  return a < b ? -1 : a > b ? 1 : 0
}
