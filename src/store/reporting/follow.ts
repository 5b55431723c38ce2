import { createHash } from 'node:crypto'
import { type Clock, isoInstant } from '../../base/clock.ts'
import { createLocalHour } from '../../base/time-zone.ts'
import { INTERNAL_SOURCES } from '../changes/divisions.ts'
import type { NotedChanges } from '../changes/noted-changes.ts'
import type { Prepare, Sqlite } from '../database/sqlite-types.ts'
import { onlyRow } from '../database/statements.ts'
import { createMeta, META } from '../sync/meta.ts'
import { type CalendarDay, createLocalTime } from './calendar-days.ts'
import { createConversationPeople, createConversations } from './conversations.ts'
import type { Deriving } from './derivation.ts'
import { DERIVED_SQL } from './derived-tables.ts'
import { createCompanies, createContacts, createParties, createPeople } from './people.ts'
import { COMPLETE_AS_OF } from './periods.ts'
import { createRecordActivity } from './record-activity.ts'
import { calendarRules, type ReportConfig } from './report-settings.ts'
import { createThreads } from './threads.ts'
import { keyedRecords } from './views.ts'
import { createWaitingKeys, followChanges, type KeyKind } from './waiting-keys.ts'

/**
 * Keeps the tables that are derived from conversations up to date. To follow a key is to compute what is derived from
 * its row again. The keys of changed rows are followed in small transactions. When a rule changes, all keys of the
 * kinds that depend on it are followed.
 */

/** How many keys the first transaction of a kind follows. A company may have tens of thousands of conversations. */
const FIRST_STEP = 20
const LARGEST_STEP = 2000
/**
 * Within this range a transaction is neither so long that other writes wait, nor so short that pages are written often.
 */
const STEP_MS = { least: 50, most: 100 }

/** How many keys the next transaction follows, by how long the last one took. Pure. */
export function stepAfter(keys: number, tookMs: number): number {
  if (tookMs > STEP_MS.most) return Math.max(1, Math.floor(keys / 2))
  return tookMs < STEP_MS.least ? Math.min(keys * 2, LARGEST_STEP) : keys
}

/** What the updates of all tables for reports need. */
export interface FollowDeps {
  db: Sqlite
  prepare: Prepare
  clock: Pick<Clock, 'elapsed' | 'now'>
  changes: Pick<NotedChanges, 'wholeTable'>
  transaction<T>(work: () => T): Promise<T>
}

export interface Rules {
  config: Pick<ReportConfig, 'reporting'>
  internalDomains: { set: readonly string[]; guessed: readonly string[] }
  days: readonly CalendarDay[]
}

/** Raise the number in this text when rows are derived in another way. */
const TABLES = createHash('sha256').update(`5 ${DERIVED_SQL}`).digest('hex')

/** Raise this number when working hours are counted in another way. */
const WORK_HOURS = 3

/** By rule: the kinds of keys that are followed again when the rule changes. */
const FOLLOWS_RULE: Readonly<Record<string, readonly KeyKind[]>> = {
  tables: ['contact', 'company', 'mail', 'meeting', 'person', 'party', 'record'],
  zone: ['mail', 'meeting', 'thread'],
  work: ['thread'],
  domains: ['person', 'party'],
  contacts: ['contact'],
  companies: ['company'],
  // The names of related objects are spelled as in `crm_objects`.
  objects: ['meeting'],
}

/** Whether the tables are kept up to date, which begins when they are first computed. */
export const isFollowing = (prepare: Prepare): boolean =>
  createMeta(prepare).get(META.reportRules) !== undefined

/** @returns a function to call while there are tables about conversations; until then they may be missing */
export function createFollow({
  db,
  prepare,
  clock,
  changes,
  transaction,
}: FollowDeps): (rules: Rules) => Promise<void> {
  const meta = createMeta(prepare)
  const waiting = createWaitingKeys(prepare)
  const objectNames = prepare<string>('SELECT name FROM crm_objects ORDER BY name').pluck()
  /** The local day of the clock, or of what was read last where the clock is behind it. */
  const latestDay = () =>
    prepare<string | null>(
      `SELECT day FROM calendar WHERE utc_from <= max(?, coalesce(${COMPLETE_AS_OF}, '')) ORDER BY utc_from DESC LIMIT 1`,
    )
      .pluck()
      .get(isoInstant(clock.now()))
  let steps: { of: string; by: Readonly<Record<KeyKind, (keys: never[]) => void>> } | undefined

  const rulesOf = (rules: Rules, crm: Deriving['crm']): Readonly<Record<string, unknown>> => {
    const { partnerDomains = [], replyLimitDays } = rules.config.reporting
    const calendar = calendarRules(rules.config)
    const lastMigration = prepare<number>('SELECT max(created_at) FROM __drizzle_migrations').pluck()
    return {
      // A migration may change rows before there are triggers.
      tables: [TABLES, onlyRow(lastMigration)],
      zone: calendar.timeZone,
      days: [rules.days[0]?.day, rules.days.at(-1)?.day],
      today: latestDay(),
      work: [
        WORK_HOURS,
        calendar.workdays,
        calendar.holidays,
        calendar.workFrom,
        calendar.workTo,
        replyLimitDays,
      ],
      domains: [rules.internalDomains, partnerDomains],
      contacts: [crm.contacts, crm.contactObject],
      companies: crm.companies,
      objects: objectNames.all(),
    }
  }

  const begin = (now: Readonly<Record<string, unknown>>, days: readonly CalendarDay[]) => {
    const stored: Readonly<Record<string, unknown>> = JSON.parse(meta.get(META.reportRules) ?? '{}')
    const differs = (rule: string) => JSON.stringify(stored[rule]) !== JSON.stringify(now[rule])
    const kinds = Object.entries(FOLLOWS_RULE).flatMap(([rule, follow]) => (differs(rule) ? follow : []))
    waiting.addAll([...new Set(kinds)])
    if (differs('today')) waiting.addAfter([stored['today'], now['today']].map(String).toSorted()[0] ?? '')
    if (differs('days')) waiting.addOutside(days[0]?.day ?? '', days.at(-1)?.day ?? '')
    meta.set(META.reportRules, JSON.stringify(now))
    followChanges(db)
  }

  return async rules => {
    const crm = keyedRecords(db)
    const now = rulesOf(rules, crm)
    const text = JSON.stringify(now)
    if (meta.get(META.reportRules) !== text) await transaction(() => begin(now, rules.days))
    if (steps?.of !== text) steps = { of: text, by: stepsBy({ prepare, waiting, crm }, rules) }
    const { by } = steps
    const most = new Map<KeyKind, number>()
    const step = () => {
      const since = clock.elapsed()
      const next = waiting.next(kind => most.get(kind) ?? FIRST_STEP)
      if (!next) return
      by[next.kind](next.keys as never[])
      waiting.done(next.kind, next.keys)
      for (const table of INTERNAL_SOURCES) changes.wholeTable(table)
      most.set(next.kind, stepAfter(most.get(next.kind) ?? FIRST_STEP, clock.elapsed() - since))
    }
    while (waiting.isAny()) await transaction(step)
  }
}

function stepsBy(
  base: Pick<Deriving, 'prepare' | 'waiting' | 'crm'>,
  { config, internalDomains, days }: Rules,
) {
  const derivation: Deriving = {
    ...base,
    time: createLocalTime(days),
    localHour: createLocalHour(config.reporting.timeZone),
    domains: {
      ours: new Set(internalDomains.set),
      partners: new Set(config.reporting.partnerDomains),
      guessed: new Set(internalDomains.guessed),
    },
    replyLimitDays: config.reporting.replyLimitDays,
  }
  return {
    contact: createContacts(derivation),
    company: createCompanies(derivation),
    mail: createConversations('mail', derivation),
    meeting: createConversations('meeting', derivation),
    person: createPeople(derivation),
    party: createParties(derivation),
    conversation: createConversationPeople(derivation),
    thread: createThreads(derivation),
    record: createRecordActivity(derivation),
  }
}
