import type { TruthKind } from '../../../src/simulator/world/truth.ts'
import type { DaemonTrial } from '../daemon-trial.ts'

/** Conditions on a daemon after the workspace rests, apart from the equality of the warehouse. */

/** The stated exception to the week: an e-mail without a text is read once in this many days. */
const DAYS: Readonly<Record<string, number>> = { message_bodies: 30 }

/** Resources that are not ok, or not due within a week. */
export function silent(trial: DaemonTrial): string[] {
  const rows = trial.rows('SELECT resource, state, reason, next_run_at FROM sync_status')
  const last = (resource: unknown) =>
    new Date(trial.localNow() + ((DAYS[String(resource)] ?? 7) / 7) * trial.weekMs).toISOString()
  return rows
    .filter(({ resource, state, next_run_at: next }) => {
      const isRead = state === 'ok' || state === 'waiting'
      return !isRead || next === null || String(next) > last(resource)
    })
    .map(row => `sync_status: ${JSON.stringify(row)}`)
}

/** By feed of single reads: the list that shows the rows. */
const LISTED: Readonly<Record<string, { kind: TruthKind; id: string }>> = {
  'activities.list.probe': { kind: 'activities', id: 'id' },
  'messages.list.probe': { kind: 'messages', id: 'id' },
  'messages.list.probe.single': { kind: 'messages', id: 'id' },
  'teams.list.probe': { kind: 'teams', id: 'id' },
  'collections.list.probe': { kind: 'collections', id: 'id' },
  'crm_records.list.probe': { kind: 'crm_records', id: 'id' },
  'crm_records.list.probe.single': { kind: 'crm_records', id: 'id' },
}

/** Tasks that check for the deletion of a row that its list shows. */
export async function unneeded(trial: DaemonTrial): Promise<string[]> {
  const found: string[] = []
  for (const [feed, { kind, id }] of Object.entries(LISTED)) {
    const keys = trial.rows('SELECT key FROM sync_tasks WHERE feed = ?', feed).map(({ key }) => String(key))
    if (keys.length === 0) continue
    const listed = new Set((await trial.simulator.truth(kind)).map(item => String(item[id])))
    const needless = keys.filter(key => listed.has(key))
    if (needless.length > 0) found.push(`sync_tasks: ${needless.length} of ${feed} for rows that are listed`)
  }
  return found
}

/** Items that each need a single read, by route. */
const ITEMS: Readonly<Record<string, readonly TruthKind[]>> = {
  '/v2/activities/{activityId}': ['unlisted_activities'],
  '/v2/objects/{object}': ['crm_objects'],
  '/v1/meetings/{meetingId}': ['meetings', 'withheld_meetings'],
  '/v1/meetings/{meetingId}/transcript': ['meetings'],
  '/v1/meetings/{meetingId}/playbook-results': ['meetings'],
  '/v1/playbooks/{playbookId}': ['playbooks', 'inactive_playbooks'],
  '/v1/playbooks/{playbookId}/execution-setting': ['playbooks', 'inactive_playbooks'],
}

/** The largest number of reads of an item after a leap of a week, and for each further day. */
const TIMES = 2
const TIMES_A_DAY = 2
/** Allowance for other reads, such as those of deleted items. */
const BESIDE = 6

/**
 * Routes that got more requests than necessary while the workspace rested.
 * @param since the time of a leap of a week
 */
export async function overspent(trial: DaemonTrial, since: number): Promise<string[]> {
  const days = Math.max(0, (7 * (trial.serverNow() - since)) / trial.weekMs - 7)
  const times = TIMES + TIMES_A_DAY * days
  const { counts } = await trial.simulator.requests()
  const spent = (route: string) =>
    counts.filter(each => each.route === route).reduce((sum, { count }) => sum + count, 0)
  const budgets: Record<string, number> = {}
  for (const [route, kinds] of Object.entries(ITEMS)) {
    const sizes = await Promise.all(kinds.map(async kind => (await trial.simulator.truth(kind)).length))
    budgets[route] = sizes.reduce((sum, size) => sum + size, 0)
  }
  // Only e-mails without a text are read again.
  budgets['/v2/messages/{messageId}'] = Number(
    trial.rows("SELECT count(*) AS count FROM message_copies WHERE text_state <> 'present'")[0]?.['count'],
  )
  return Object.entries(budgets)
    .map(([route, size]) => ({ route, most: Math.ceil(times * size) + BESIDE, made: spent(route) }))
    .filter(({ most, made }) => made > most)
    .map(
      ({ route, most, made }) =>
        `${made} requests to ${route} in ${days.toFixed(1)} days and a week, at most ${most} are needed`,
    )
}
