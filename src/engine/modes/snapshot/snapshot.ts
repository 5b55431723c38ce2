import type { DeclaredFeed } from '../../../catalog/feeds.ts'
import type { Resource, SnapshotFeed } from '../../../declare/resource.ts'
import type { Segment } from '../../../store/sync/segments.ts'
import type { EngineContext } from '../../context/context.ts'
import type { Source } from '../../context/job.ts'
import { createPlanInBatches } from '../../scheduler/batch-plan.ts'
import { createListSources } from '../lists.ts'
import { createLoopGuards } from '../pass.ts'
import type { PassDuration } from './page.ts'
import { askPage } from './page-job.ts'
import { forgetSeen } from './pass-end.ts'

/**
 * Reads the whole list in every pass, with one pass for each scope. The pass notes the keys that it sees. Rows that it
 * has not seen by its end are missing, and the declared evidence decides whether they are gone.
 */
export function createSnapshot(
  context: EngineContext,
  list: DeclaredFeed<SnapshotFeed>,
  { parents }: Resource,
): Source[] {
  const { store, backoffs } = context
  const { id, feed } = list
  const guards = createLoopGuards(context.schedule)
  const durations = new Map<string, PassDuration>()
  const reads = { ...list, unlimited: new Set<string>(), failing: new Set<string>(), guards, durations }
  /** The scopes of which a page is requested. */
  const requested = new Set<string>()
  let scopes: Scopes | undefined

  /** Scopes are the rows of parents, so these are read first. */
  const prepare = (): boolean => {
    if (feed.scope && !parents.every(context.isFinished)) return false
    // A scope that was waiting when the scopes were collected may be due by now, even if no other scope is.
    if (scopes?.waiting.some(scope => !backoffs.isWaiting(id, scope))) scopes = undefined
    scopes ??= store.attempt(() => updateScopes(context, id, feed))?.value
    return scopes !== undefined
  }

  const leftovers = createPlanInBatches(context, {
    canBegin: () => true,
    *batches() {
      for (const { scope, pages } of store.segments.of(id))
        if (pages === 0 && !requested.has(scope)) yield* forgetSeen(context, id, scope)
    },
  })

  /** False while keys that an abandoned pass has seen are left: these keys are removed first. */
  const mayBegin = ({ pages, scope }: Segment): boolean => {
    const hasLeftover = () => pages === 0 && store.seen.hasAny(id, scope)
    if (!hasLeftover()) return true
    leftovers.invalidate()
    leftovers.isReady()
    return !hasLeftover()
  }

  return createListSources(context, {
    list,
    route: feed.list.path,
    prepare,
    mayTake: pass => scopes?.asked.has(pass.scope) === true && mayBegin(pass),
    ask(pass) {
      requested.add(pass.scope)
      guards.asking(pass)
      if (pass.cursor === null) durations.set(pass.scope, { ms: 0, at: context.clock.elapsed() })
      return { ...askPage(context, reads, pass), over: () => void requested.delete(pass.scope) }
    },
    replan() {
      scopes = undefined
    },
  })
}

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
