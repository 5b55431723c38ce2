import type { DeclaredFeed } from '../../../catalog/feeds.ts'
import type { Resource, SnapshotFeed } from '../../../declare/resource.ts'
import type { Segment } from '../../../store/sync/segments.ts'
import type { EngineContext } from '../../context/context.ts'
import type { Source } from '../../context/job.ts'
import { dueSegments } from '../../due/due.ts'
import { createTurns } from '../../due/overload-order.ts'
import { isTried } from '../../due/retries.ts'
import { createBatchPlan } from '../../scheduler/batch-plan.ts'
import { createLoopGuards } from '../pass.ts'
import type { PassDuration } from './page.ts'
import { pageJob } from './page-job.ts'
import { forgetSeen } from './pass-end.ts'

/**
 * Reads the whole list in every pass, with one pass for each scope. The pass notes the keys that it sees. Rows that it
 * has not seen by its end are missing, and the declared evidence decides whether they are gone.
 */
export function createSnapshot(
  context: EngineContext,
  list: DeclaredFeed<SnapshotFeed>,
  { parents }: Resource,
): Source {
  const { store, backoffs, schedule } = context
  const { resource, id, feed } = list
  const where = { resource, feed: id }
  const underWay = new Set<string>()
  const guards = createLoopGuards(context.schedule)
  const turns = createTurns<Segment>(pass => schedule.overdue(list, pass))
  const durations = new Map<string, PassDuration>()
  const reads = { ...list, unlimited: new Set<string>(), failing: new Set<string>(), guards, durations }
  let scopes: Scopes | undefined

  const isReady = () => parents.every(parent => !feed.scope || context.isFinished(parent))
  /** The passes that are due; undefined while another program writes the database. */
  const passes = (): Segment[] | undefined => {
    // A scope that was waiting when the scopes were collected may be due by now, even if no other scope is.
    if (scopes?.waiting.some(scope => !backoffs.isWaiting(id, scope))) scopes = undefined
    scopes ??= store.attempt(() => updateScopes(context, id, feed))?.value
    if (scopes === undefined) return undefined
    const { asked } = scopes
    return dueSegments(context, list).filter(({ scope }) => asked.has(scope))
  }

  const leftovers = createBatchPlan(context, {
    canBegin: () => true,
    *batches() {
      for (const { scope, pages } of store.segments.of(id))
        if (pages === 0 && !underWay.has(scope)) yield* forgetSeen(context, id, scope)
    },
  })

  /** False while keys that an abandoned pass has seen are left. They are removed first. */
  const mayBegin = ({ pages, scope }: Segment): boolean => {
    const hasLeftover = () => pages === 0 && store.seen.hasAny(id, scope)
    if (!hasLeftover()) return true
    leftovers.invalidate()
    leftovers.isReady()
    return !hasLeftover()
  }

  /** The passes that were due at the last look, but for those that have begun since. */
  let due = new Set<Segment>()
  let lookedAt = Number.NEGATIVE_INFINITY
  const look = () => {
    due = new Set(passes()?.filter(({ scope }) => !underWay.has(scope)))
    lookedAt = context.clock.elapsed()
  }
  const isDue = (pass: Segment | undefined): pass is Segment =>
    pass !== undefined &&
    !underWay.has(pass.scope) &&
    scopes?.asked.has(pass.scope) === true &&
    schedule.waitMs(list, pass) === 0
  const takeFound = (): Segment | undefined => {
    for (let pass = turns.take([...due]); pass; pass = turns.take([...due])) {
      due.delete(pass)
      const now = store.segments.find(pass.id)
      if (isDue(now) && mayBegin(now)) return now
    }
    return undefined
  }

  const takeDue = (): Segment | undefined => {
    const found = context.clock.elapsed() - lookedAt < LOOK_MS ? takeFound() : undefined
    if (found) return found
    look()
    return takeFound()
  }

  return {
    ...where,
    route: feed.list.path,
    get lane() {
      return schedule.laneOf(list, undefined)
    },
    next() {
      if (backoffs.isWaiting(id) || !isReady()) return undefined
      const pass = takeDue()
      if (!pass) return undefined
      underWay.add(pass.scope)
      guards.asking(pass)
      if (pass.cursor === null) durations.set(pass.scope, { ms: 0, at: context.clock.elapsed() })
      return pageJob(context, reads, pass, () => underWay.delete(pass.scope))
    },
    finished: () =>
      backoffs.isWaiting(id) ||
      (isReady() && underWay.size === 0 && passes()?.length === 0 && !isTried(context, where)),
    replan() {
      scopes = undefined
    },
  }
}

/** A look goes through all scopes, of which there may be thousands, and serves many requests. */
const LOOK_MS = 1000

/** The scopes of a list, such as the objects of the record lists. A list without scopes has the scope ''. */
interface Scopes {
  asked: ReadonlySet<string>
  /** The scopes that were backing off when the scopes were collected. */
  waiting: readonly string[]
}

/** Adds a segment for each new scope, and removes the segments of scopes that no longer exist. */
function updateScopes({ store, backoffs }: EngineContext, id: string, { scope }: SnapshotFeed): Scopes {
  const wanted = new Set(
    scope ? [...(scope.always ?? []), ...store.stored.liveValues(scope.table, scope.column)] : [''],
  )
  const passes = store.segments.of(id)
  for (const pass of passes) if (!wanted.has(pass.scope)) store.segments.remove(pass)
  const waiting = [...wanted].filter(one => backoffs.isWaiting(id, one))
  const asked = new Set(wanted)
  for (const one of waiting) asked.delete(one)
  const known = new Set(passes.map(pass => pass.scope))
  for (const one of asked)
    if (!known.has(one)) store.segments.add({ feed: id, scope: one, from: null, to: null })
  return { asked, waiting }
}
