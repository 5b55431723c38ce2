import freeMail from 'email-providers'

/** On whose side a person is. Pure. */

export type Side = 'ours' | 'theirs' | 'partner' | 'unknown'

/** What is known of the domains of addresses. */
export interface Domains {
  /** Domains that the settings name. */
  ours: ReadonlySet<string>
  partners: ReadonlySet<string>
  /** Domains guessed from the addresses of members. */
  guessed: ReadonlySet<string>
}

export interface PersonFacts {
  /** In lower case; null where the address has none. */
  domain: string | null
  /** Whether a member has the address, or had it. */
  isMember: boolean
  /** The flag of the last meeting with the person that has a flag; null when no meeting has one. */
  isInternal: boolean | null
}

/**
 * Membership decides first, then the settings, then the meeting, then the guessed domains. While no domain is known to
 * be ours, the side of everyone else is unknown.
 */
export function sideOf({ domain, isMember, isInternal }: PersonFacts, known: Domains): Side {
  if (isMember) return 'ours'
  if (domain !== null && known.ours.has(domain)) return 'ours'
  if (domain !== null && known.partners.has(domain)) return 'partner'
  if (isInternal !== null) return isInternal ? 'ours' : 'theirs'
  if (domain === null) return 'unknown'
  if (known.guessed.has(domain)) return 'ours'
  return known.ours.size + known.guessed.size === 0 ? 'unknown' : 'theirs'
}

/** The strongest side of several addresses of one person. */
export const strongestSide = (sides: readonly Side[]): Side =>
  (['ours', 'partner', 'theirs'] as const).find(side => sides.includes(side)) ?? 'unknown'

/** Providers in Japan that the list of the library lacks. */
const MORE_PROVIDERS = [
  ...['nifty.com', 'nifty.ne.jp', 'ocn.ne.jp', 'biglobe.ne.jp', 'so-net.ne.jp', 'plala.or.jp', 'dion.ne.jp'],
  ...[
    'asahi-net.or.jp',
    'au.com',
    'auone-net.jp',
    'jcom.home.ne.jp',
    'live.jp',
    'ymobile.ne.jp',
    'zaq.ne.jp',
  ],
]

const FREE_MAIL: ReadonlySet<string> = new Set([...freeMail, ...MORE_PROVIDERS])

/** Whether people of many companies have addresses at this domain. */
export const isFreeMail = (domain: string): boolean => FREE_MAIL.has(domain)

export function domainOf(address: string): string | null {
  const at = address.lastIndexOf('@')
  return at < 0 || at === address.length - 1 ? null : address.slice(at + 1)
}

/** One address at another domain may be a contractor's. */
const LEAST_MEMBERS = 2

/**
 * The domains of the workspace: those of at least two members or of at least half of them, but none at which many
 * companies have addresses. In alphabetical order.
 */
export function guessDomains(memberAddresses: readonly string[]): string[] {
  const counts = new Map<string, number>()
  for (const address of memberAddresses) {
    const domain = domainOf(address)
    if (domain !== null && !isFreeMail(domain)) counts.set(domain, (counts.get(domain) ?? 0) + 1)
  }
  const all = [...counts.values()].reduce((sum, count) => sum + count, 0)
  const own = [...counts].filter(([, count]) => count >= LEAST_MEMBERS || count * 2 >= all)
  return own.map(([domain]) => domain).sort()
}
