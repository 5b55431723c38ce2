import type { ParleyError } from '../../base/errors.ts'
import { safeText } from '../../base/safe-text.ts'
import type { FeedName } from '../../catalog/feeds.ts'
import type { Task } from '../../store/sync/tasks/task.ts'
import type { EngineContext } from '../context/context.ts'
import { wantList } from './wants.ts'

/** Makes a feed, or one scope of a feed, wait, and records why. */

export interface FailedPart {
  scope: string
  /**
   * The tasks of the failed request; undefined for a list. The failure also ends when none of these tasks is due any
   * more, for example because a list showed their rows. For a list, it also ends when the scope has no segment left.
   */
  tasks?: readonly Task[] | undefined
}

/** Sorts after every instant. */
const NEVER = '~'

/** Records that the feed, or one scope of it, has failed. The resource is failing until this part is read. */
export function backOff(
  context: EngineContext,
  feed: FeedName,
  error: ParleyError,
  { scope, tasks }: FailedPart = { scope: '' },
): void {
  const { store, backoffs, runs } = context
  backoffs.failed(feed.id, scope)
  // The list is due as soon as its backoff ends, since the resource stays failing until the list is read.
  if (scope === '') wantList(context, feed.id)
  const isDue = (task: Task) => (store.tasks.find(task)?.dueAt ?? NEVER) <= store.dueClock.now()
  // A whole feed may have failed before it has any segment.
  const hasList = () => scope === '' || store.segments.of(feed.id, scope).length > 0
  const isLeft = () => tasks?.some(isDue) ?? hasList()
  runs.fail(feed, error, { isUnread: () => backoffs.hasFailed(feed.id, scope) && isLeft() })
}

/** Records that this workspace does not offer the feed, or one scope of it. */
export function markUnavailable(
  { store, backoffs, log }: EngineContext,
  { resource, id }: FeedName,
  why: string,
  { scope = '', wasOffered = false } = {},
): void {
  const reason = safeText(why)
  if (backoffs.reason(resource) === undefined) {
    const isNoted = store.state.get(resource).reason === reason
    const say = isNoted ? log.debug : log.info
    say('Resource or a part of it is unavailable: the workspace does not offer it', { resource, reason })
  }
  backoffs.unavailable(id, scope, { reason, wasOffered })
}
