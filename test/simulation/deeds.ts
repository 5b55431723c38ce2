import { CATALOG } from '../../src/catalog/catalog.ts'
import { feedsOf } from '../../src/catalog/feeds.ts'
import type { ResourceName } from '../../src/declare/resource-names.ts'
import type { Change } from '../../src/simulator/changes/change.ts'
import type { Fault, Faults } from '../../src/simulator/faults/faults.ts'
import type { LimitModel } from '../../src/simulator/faults/limits.ts'
import { routeTemplates } from '../../src/simulator/operations/routes.ts'
import { drawChange } from '../daemon/lives/changes.ts'
import { drawFaults } from '../daemon/lives/faults.ts'
import { ODD_ANSWERS, WRONG_ANSWERS } from '../daemon/lives/hostile-answers.ts'
import type { Draw } from '../torture/draw.ts'
import type { WebhookSubject } from './webhook.ts'

/** What happens to a workspace, its API, the machine and the daemon. Plain data, so that a life can be written down. */
export type Deed = { atMs: number } /** `backMs`: what it hides is revealed again after this time. */ & (
  | { kind: 'change'; change: Change; backMs?: number }
  /** Wrong answers. Without an end, the API is like that: what it then answers is what it publishes. */
  | { kind: 'answers'; faults: Faults; forMs?: number }
  | { kind: 'limit'; limit: LimitModel; forMs: number }
  /** The API refuses the key. */
  | { kind: 'refuse'; forMs: number }
  /** SIGKILL, before the n-th statement of SQL from then (that contains `withText`) or at once, and a start after a while. */
  | { kind: 'kill'; statement?: number; withText?: string; downMs: number }
  | { kind: 'stop'; downMs: number }
  /** SIGHUP after an edit of the settings file, and another once the resources are what they were. */
  | { kind: 'reload'; pollSeconds: number }
  | { kind: 'reload'; resources: readonly ResourceName[]; forMs: number }
  | { kind: 'suspend'; forMs: number }
  /** The machine's clock is wrong. */
  | { kind: 'clock'; offMs: number; forMs: number }
  /** Another program holds the write lock of the database. */
  | { kind: 'lock'; forMs: number }
  /** Another program writes to the database. */
  | { kind: 'write'; sql: string }
  /** A command while the daemon runs. */
  | { kind: 'command'; argv: readonly string[] }
  /** The product says that something has happened to an item. Where there is no item, it names one that never was. */
  | { kind: 'webhook'; about: WebhookSubject; nth: number }
  /** The daemon is stopped for a backfill. */
  | { kind: 'backfill'; argv: readonly string[] }
)

export type DeedKind = Deed['kind']

type Undated = Deed extends infer D ? (D extends Deed ? Omit<D, 'atMs'> : never) : never

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

type Make = (draw: Draw, resources: readonly ResourceName[]) => Undated

const aWhile = (draw: Draw) => draw.pick([20 * SECOND, 10 * MINUTE, 3 * HOUR, 20 * HOUR] as const)

/** A change of something that the daemon reads. */
const change: Make = (draw, resources) => {
  for (;;) {
    const change = drawChange(draw)
    if (!resources.includes(resourceOf(change))) continue
    return {
      kind: 'change',
      change: isOfCalendar(change) ? { ...change, count: 120, at: AHEAD } : change,
      ...(change.kind === 'hide' && { backMs: 2 * aWhile(draw) }),
    }
  }
}

/** In µs. Days after the last deed of most lives. */
const AHEAD = Date.parse('2026-07-20T12:00:00Z') * 1000

/** Events and e-mails have no state that is not ready, so this draw of some edits makes them ones of the future. */
const isOfCalendar = (change: Change): boolean =>
  change.kind === 'edit' &&
  (change.resource === 'activities' || change.resource === 'messages') &&
  'unready' in change

const resourceOf = (change: Change): ResourceName => {
  if ('resource' in change) return change.resource
  if ('object' in change) return 'crm_objects'
  if (change.kind === 'editSettings') return 'bot_definition'
  return change.kind === 'completeOverview' ? 'meetings' : 'transcripts'
}

const answers =
  (make: (draw: Draw, resources: readonly ResourceName[]) => Faults): Make =>
  (draw, resources) => ({ kind: 'answers', faults: make(draw, resources), forMs: aWhile(draw) })

/** The routes that the daemon asks for its resources. */
function routesOf(resources: readonly ResourceName[]): [string, ...string[]] {
  const anyKey = (path: string) => path.replaceAll(/\{\w+\}/g, '{}')
  const read = CATALOG.filter(({ name }) => resources.includes(name)).flatMap(feedsOf)
  const paths = new Set(read.map(({ feed }) => anyKey('list' in feed ? feed.list.path : feed.read.path)))
  return routeTemplates().filter(route => paths.has(anyKey(route))) as [string, ...string[]]
}

/** Faults as networks and servers have them; those of one route are of a route that the daemon asks. */
function faults(draw: Draw, resources: readonly ResourceName[]): Faults {
  const routes = routesOf(resources)
  return drawFaults(draw).map(fault =>
    fault.route === undefined || routes.includes(fault.route)
      ? fault
      : { ...fault, route: draw.pick(routes) },
  )
}

/** One at a time: an API that denies an item twice, minutes apart, has deleted it as far as anyone can know. */
const blip = (draw: Draw, resources: readonly ResourceName[]): Fault => ({
  ...draw.pick(WRONG_ANSWERS),
  route: draw.pick(routesOf(resources)),
  atMost: 1,
})

const LIMITS: readonly [LimitModel, ...LimitModel[]] = [
  { kind: 'token-bucket', rate: 1, burst: 5 },
  { kind: 'token-bucket', rate: 4, burst: 2, hint: 'none' },
  { kind: 'fixed-window', count: 60, windowMs: MINUTE, hint: 'retry-after-date' },
  { kind: 'sliding-window', count: 30, windowMs: 10 * SECOND, rateHeaders: true },
  { kind: 'concurrency', max: 1 },
]

/** Pages that bring nothing and say that there are more, without an end. */
const EMPTY_PAGES: Fault = {
  kind: 'body',
  route: '/v2/activities',
  to: '{"data":[],"page_info":{"end_cursor":"c{n}","has_next_page":true}}',
}

const MESSAGE_ID = '"header_message_id":("[^"]*"|null)'

/**
 * Half of the replicas have a clock that is ahead; a field without a column is another one at each read; a log seems empty;
 * one answer asks to wait for an hour, or all of a route do; a list shows half of its rows; ids are in upper case; all e-mails have a blank
 * Message-ID, or the same one.
 */
const LONG_FAULTS: readonly [Fault, ...Fault[]] = [
  { kind: 'ahead', probability: 0.5 },
  {
    kind: 'rewrite',
    route: '/v1/meetings/{meetingId}',
    from: '"meeting_id":',
    to: '"views":{n},"meeting_id":',
  },
  { kind: 'empty', route: '/v1/public-api-access-logs' },
  { kind: 'status', status: 503, retryAfter: 3600, atMost: 1 },
  { kind: 'partial', route: '/v2/activities' },
  { kind: 'status', status: 404, route: '/v1/playbooks/{playbookId}' },
  { kind: 'lag', route: '/v2/objects/{object}/records', delayMs: HOUR },
  { kind: 'status', status: 429, retryAfter: 3600, route: '/v1/meetings/{meetingId}/transcript' },
  { kind: 'upper-case', route: '/v2/activities' },
  { kind: 'rewrite', from: MESSAGE_ID, to: '"header_message_id":" "' },
  { kind: 'rewrite', from: MESSAGE_ID, to: '"header_message_id":" <1>"' },
]

/** What disturbs the daemon, each kind as often as it stands here. */
const POOL: readonly [Make, ...Make[]] = [
  answers(faults),
  answers(faults),
  answers((draw, resources) => [blip(draw, resources), blip(draw, resources)]),
  draw => ({ kind: 'answers', faults: [draw.pick(WRONG_ANSWERS)], forMs: 20 * SECOND }),
  answers(draw => [{ kind: 'late', probability: 0.4, delayMs: 1 + draw.below(3000) }]),
  answers(draw => [{ kind: 'lag', probability: 0.5, delayMs: 300 + draw.below(4000) }]),
  answers(draw => [draw.pick(ODD_ANSWERS)]),
  (draw, resources) => {
    const part: Fault = { kind: 'partial', route: draw.pick(routesOf(resources)) }
    return { kind: 'answers', faults: [draw.pick([part, EMPTY_PAGES])], forMs: 20 * MINUTE }
  },
  answers(draw => [draw.pick(LONG_FAULTS)]),
  draw => ({ kind: 'limit', limit: draw.pick(LIMITS), forMs: aWhile(draw) }),
  draw => ({ kind: 'refuse', forMs: aWhile(draw) }),
  draw => ({ kind: 'kill', statement: 1 + draw.below(4000), downMs: aWhile(draw) }),
  draw => ({ kind: 'kill', statement: 1 + draw.below(300), downMs: SECOND }),
  draw => ({ kind: 'kill', downMs: aWhile(draw) }),
  draw => ({ kind: 'stop', downMs: aWhile(draw) }),
  draw => ({ kind: 'reload', pollSeconds: draw.pick([1800, 3600, 21_600]) }),
  (draw, resources) => ({
    kind: 'reload',
    resources: [draw.pick(resources as [ResourceName])],
    forMs: aWhile(draw),
  }),
  draw => ({ kind: 'suspend', forMs: draw.pick([HOUR, 5 * HOUR, 30 * HOUR]) }),
  draw => ({ kind: 'clock', offMs: draw.pick([HOUR, -HOUR, 40 * DAY, -40 * DAY]), forMs: aWhile(draw) }),
  draw => ({ kind: 'lock', forMs: draw.pick([SECOND, 20 * SECOND]) }),
  (draw, resources) => ({
    kind: 'command',
    argv: [draw.pick(['resync', 'accept-deletions']), draw.pick(resources as [ResourceName])],
  }),
  () => ({ kind: 'backfill', argv: [] }),
  (draw, resources) => ({
    kind: 'backfill',
    argv: draw.pick([
      ['--only', draw.pick(resources as [ResourceName])],
      ['--since', '2026-06-01'],
    ]),
  }),
  draw => ({
    kind: 'webhook',
    about: draw.pick(['activities', 'meetings', 'playbooks', 'crm_records']),
    nth: draw.below(10),
  }),
]

/** After these, what was only in memory is made again. Every third life has none of them. */
const STARTS: readonly DeedKind[] = ['kill', 'stop', 'reload', 'backfill', 'refuse']

/** Every second deed is a change. @param spanMs the time over which the deeds are spread */
export function drawDeeds(
  draw: Draw,
  { count, spanMs, resources }: { count: number; spanMs: number; resources: readonly ResourceName[] },
): Deed[] {
  const isSteady = draw.below(3) === 0
  const disturb: Make = (draw, resources) => {
    for (;;) {
      const deed = draw.pick(POOL)(draw, resources)
      if (!isSteady || !STARTS.includes(deed.kind)) return deed
    }
  }
  return Array.from({ length: count }, (_, index) => ({
    ...(index % 2 === 0 ? change : disturb)(draw, resources),
    atMs: draw.below(spanMs),
  })).sort((one, other) => one.atMs - other.atMs)
}
