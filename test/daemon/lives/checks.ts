import type { TruthKind } from '../../../src/simulator/world/truth.ts'
import type { DaemonTrial } from '../daemon-trial.ts'

/** What must hold of a daemon that has followed a world which rests, beside that the warehouse is equal to it. */

/** The stated exception to the week: what has no text is asked for once in so many days. */
const DAYS: Readonly<Record<string, number>> = { message_bodies: 30 }

/** Resources that are not read as they should be, or will not be read within a week. */
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

/** Of a feed that asks what is missing: where the list is published that shows what is not. */
const LISTED: Readonly<Record<string, { kind: TruthKind; id: string }>> = {
  'activities.list.probe': { kind: 'activities', id: 'id' },
  'messages.list.probe': { kind: 'messages', id: 'id' },
  'teams.list.probe': { kind: 'teams', id: 'id' },
  'collections.list.probe': { kind: 'collections', id: 'id' },
  'crm_records.list.probe': { kind: 'crm_records', id: 'id' },
}

/** Tasks that ask whether something is gone although its list shows it. */
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

/** Items that each need a request of their own, by the route that asks for them. */
const ITEMS: Readonly<Record<string, readonly TruthKind[]>> = {
  '/v2/activities/{activityId}': ['unlisted_activities'],
  '/v2/objects/{object}': ['crm_objects'],
  '/v1/meetings/{meetingId}': ['meetings', 'withheld_meetings'],
  '/v1/meetings/{meetingId}/transcript': ['meetings'],
  '/v1/meetings/{meetingId}/playbook-results': ['meetings'],
  '/v1/playbooks/{playbookId}': ['playbooks', 'inactive_playbooks'],
  '/v1/playbooks/{playbookId}/execution-setting': ['playbooks', 'inactive_playbooks'],
}

/** How often anything may be asked for when a week has passed at once, and in each day beside. */
const TIMES = 2
const TIMES_A_DAY = 2
/** What is asked for beside, such as what is gone. */
const BESIDE = 6

/**
 * Routes that were asked more often than the world needs while it rested.
 * @param since when a week passed at once
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
  // Only those without a text are asked for again.
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
