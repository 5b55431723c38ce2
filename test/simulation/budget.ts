import type { Truth, TruthKind } from '../../src/simulator/world/truth.ts'

/**
 * How often each route may be asked from the begin of a day until now. A day on which nothing happens costs the polls of
 * the newest events, four passes over each whole list, and single reads that become rarer with the age of the item.
 * Whatever happens to the workspace, the API, the machine or the program may have all of a route read once more, on that
 * day and on the next.
 *
 *     MARGIN × (polls + passes + beginnings × once + happenings × again) + SLACK + tries + trials
 *
 * What has failed is tried again. While another route fails, a trial on this one may tell whether the whole API does.
 *
 * Where lists have shown e-mails with other values for a while, the next pass over old ones, up to a week later, shows the right
 * values, and each text whose e-mail changes is read again: once each, on whichever day of that week (`corrections`).
 */
export type Budget = (route: string, spent: Spent) => number

interface Failures {
  /** Requests that got no answer of the API, or that it could not answer. */
  failed: number
  /** Those of other routes. */
  failedElsewhere: number
}

/** Of the day until now. */
export interface Spent extends Failures {
  /** Of the newest events. */
  polls: number
  /** 0 to 1. */
  share: number
  /** Those after which everything is read. */
  beginnings: number
  /** Those after which everything that is read again and again may be read once more. */
  happenings: number
}

const MARGIN = 1.5
/** For routes of which a still day asks next to nothing: a few tries of what failed. */
const SLACK = 12

/** Failed requests that are not counted. `trace.ts` says which requests have failed. */
const TRIES_AN_HOUR = 6
const TRIALS_AN_HOUR = 1

const DAY = 86_400_000
const PASSES_A_DAY = 4
const POLLS_A_DAY_OF_MEETINGS = 24
const LOOKS_A_DAY_AT_THE_LOG = 48
const MONTHS_OF_LOG = 25
const TRIES_ON_THE_FIRST_DAY = 7
/** Those of less than an hour every five minutes. */
const RECENT_PARTS_A_DAY = 24 * 60

/** Single reads of one item a day: at a tenth of its age apart, but at most hourly and at least weekly. */
const readsADay = (ageMs: number) => Math.min(24, Math.max(1 / 7, (10 * DAY) / Math.max(ageMs, 1)))

const sum = (numbers: readonly number[]) => numbers.reduce((one, other) => one + other, 0)

interface Cost {
  /** Requests that read everything of the route. */
  once: number
  /** Those of what is ever read again. Default: everything. */
  again?: number
  /** Requests of a still day, but for the polls of the newest events. */
  still: number
  /** Requests of a poll. */
  poll?: number
}

/** @param scale the factor of `sync.interval_scale` */
export function budgetFor(truth: Truth, { scale, now }: { scale: number; now: number }): Budget {
  const count = (...kinds: readonly TruthKind[]) => sum(kinds.map(truth.count))
  const whole = (rows: number, scopes = 1, passes = PASSES_A_DAY): Cost => {
    const once = scopes + Math.floor(rows / 50)
    return { once, still: (once * passes) / scale }
  }
  const weekly = (items: number): Cost => ({ once: items, still: items / 7 / scale })
  /** What is empty may not be ready: it is asked for again after ten minutes, then at growing intervals of up to a day. */
  const prepared = (items: number, kind: TruthKind, field: string): Cost => {
    const empty = [...truth.items(kind)].filter(item => (item[field] as unknown[]).length === 0).length
    return { once: items + TRIES_ON_THE_FIRST_DAY * empty, still: (items / 7 + empty) / scale }
  }
  /**
   * Older parts of the list are read again, the recent ones more often: together about twice a day. What is dated in the
   * future is read every hour. Where that is more than half a page, no poll reaches back into the last hours, which are read
   * in parts instead.
   */
  const timeline = (kind: TruthKind, time: string): Cost => {
    const once = 1 + Math.floor(count(kind) / 100)
    const ahead = [...truth.items(kind)].filter(item => Date.parse(String(item[time])) > now).length
    const recent = ahead > 50 ? RECENT_PARTS_A_DAY : 0
    return { once, still: (2 * once + 24 * Math.ceil(ahead / 100) + recent) / scale, poll: 1 }
  }
  const ages = [...truth.items('meetings')].map(
    ({ start_time }) => (now - Date.parse(String(start_time))) * scale,
  )
  const details = count('meetings', 'withheld_meetings')
  const objects = count('crm_objects') + 1
  const records = count('crm_records')
  const playbooks = count('playbooks', 'inactive_playbooks')
  const costs: Readonly<Record<string, Cost>> = {
    '/v1/members': whole(count('members')),
    '/v1/teams': whole(count('teams')),
    '/v1/teams/{teamId}': weekly(count('teams')),
    '/v1/collections': whole(count('collections')),
    '/v1/collections/{collectionId}': weekly(count('collections')),
    '/v1/meetings': both(
      whole(details, 1, POLLS_A_DAY_OF_MEETINGS),
      whole(count('collection_meetings'), count('collections')),
    ),
    '/v1/meetings/{meetingId}': {
      once: details,
      still: (sum(ages.map(readsADay)) + count('withheld_meetings') / 7) / scale,
    },
    '/v1/meetings/{meetingId}/transcript': prepared(details, 'transcripts', 'entries'),
    '/v1/meetings/{meetingId}/playbook-results': prepared(details, 'playbook_results', 'results'),
    '/v1/playbooks': whole(playbooks),
    '/v1/playbooks/{playbookId}': weekly(playbooks),
    '/v1/playbooks/{playbookId}/execution-setting': weekly(playbooks),
    '/v2/activities': timeline('activities', 'occurred_at'),
    '/v2/activities/{activityId}': weekly(count('activities', 'unlisted_activities')),
    '/v2/messages': timeline('messages', 'received_at'),
    '/v2/messages/{messageId}': weekly(count('messages')),
    '/v2/objects': whole(objects),
    '/v2/objects/{object}': { once: objects, still: (objects * PASSES_A_DAY) / scale },
    '/v2/objects/{object}/records': both(whole(records, objects), weekly(records)),
    '/v2/objects/{object}/records/{recordId}': weekly(records),
    '/v1/public-api-access-logs': { once: MONTHS_OF_LOG, again: 2, still: LOOKS_A_DAY_AT_THE_LOG / scale },
    '/v1/bot-definition': whole(1),
    '/v1/settings/integrations': whole(1),
  }
  return (route, { polls, share, beginnings, happenings, failed, failedElsewhere }) => {
    const { once, again = once, still, poll = 0 } = costs[route] ?? { once: 0, still: 0 }
    // What comes at intervals may come at the begin of each.
    const passes = still * Math.min(1, share + 1 / PASSES_A_DAY)
    const tries = Math.min(failed, SLACK + 24 * TRIES_AN_HOUR * share)
    const trials = Math.min(failedElsewhere, SLACK + 24 * TRIALS_AN_HOUR * share)
    const usual = polls * poll + passes + beginnings * once + happenings * again
    return Math.ceil(MARGIN * usual + SLACK + tries + trials)
  }
}

const both = (one: Cost, other: Cost): Cost => ({
  once: one.once + other.once,
  still: one.still + other.still,
})

interface BudgetOptions {
  start: number
  now(): number
  truth(): Truth
  pollSeconds(): number
  scale: number
}

/** The budget of the days of a life, in which something happens now and then. */
export function createBudget({ start, now, truth, pollSeconds, scale }: BudgetOptions) {
  /** Texts that are still to be read again because lists have shown wrong values, and until when. */
  const corrections: { until: number; texts: number }[] = []
  const takeCorrection = () => {
    const open = corrections.find(({ until, texts }) => until > now() && texts > 0)
    if (open) open.texts -= 1
    return open !== undefined
  }
  /** Until when each may have consequences. */
  const happenings: { until: number; isBeginning: boolean }[] = []
  let today: ({ day: number; budget: Budget } & Pick<Spent, 'beginnings' | 'happenings'>) | undefined
  let polls = 0
  let countedAt = start
  const count = () => {
    polls += (now() - countedAt) / (pollSeconds() * 1000)
    countedAt = now()
  }
  return {
    /**
     * It may have consequences for a day after its end. Call it before the settings change.
     * @param isBeginning whether everything is read after it, as at the first start
     * @param isWrong whether lists show wrong values meanwhile
     */
    happened({ forMs = 0, isBeginning = false, isWrong = false } = {}) {
      count()
      if (isWrong)
        corrections.push({ until: now() + forMs + (7 * scale + 1) * DAY, texts: truth().count('messages') })
      happenings.push({ until: now() + forMs + DAY, isBeginning })
      today = undefined
    },
    /**
     * The most requests of the route on this day until now.
     * @param requests those that were made
     * @param failed of them
     * @param failedElsewhere of all other routes
     */
    of(route: string, { requests, ...failures }: Failures & { requests: number }): number {
      const day = Math.floor((now() - start) / DAY)
      const begin = start + day * DAY
      if (countedAt < begin) {
        countedAt = begin
        polls = 0
      }
      count()
      if (today?.day !== day) {
        const felt = happenings.filter(({ until }) => until > begin)
        const beginnings = felt.filter(({ isBeginning }) => isBeginning).length
        const budget = budgetFor(truth(), { scale, now: now() })
        today = { day, budget, beginnings, happenings: felt.length - beginnings }
      }
      const most = today.budget(route, { ...today, polls, share: (now() - begin) / DAY, ...failures })
      const isCorrection = requests > most && route === '/v2/messages/{messageId}' && takeCorrection()
      return isCorrection ? requests : most
    },
  }
}
