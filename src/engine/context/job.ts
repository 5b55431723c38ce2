import type { Sent } from '../../api/client.ts'
import type { ApiRequest } from '../../api/request.ts'
import type { ParleyError } from '../../base/errors.ts'
import type { Expected } from '../../declare/resource.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import type { Segment } from '../../store/sync/segments.ts'
import type { TaskBounds } from '../../store/sync/tasks/due.ts'
import type { Task } from '../../store/sync/tasks/task.ts'

/** Long work on the database. It yields between batches, so that other work gets its turn on the event loop. */
export type Batches = Generator<undefined, void, undefined>

/** What a request reads. When it has failed, these rows note it, and when it is made again (`due/retries.ts`). */
export type Reads = { segment: Pick<Segment, 'id' | 'tries'> } | { tasks: readonly Task[] }

/**
 * The unit of work: one request and the handlers of its outcomes. A list's checkpoint is in the database, so every page
 * is a separate job and waits only for its own answer.
 */
export interface Job {
  resource: ResourceName
  feed: string
  /** Set where the scopes of the feed fail and wait separately. */
  scope?: string
  request: ApiRequest
  /** Undefined when a failed request is not made again. */
  reads?: Reads
  /** The most requests in a row that may fail before the job fails. When undefined, the retry rules decide. */
  attempts?: number
  /** Statuses with a declared meaning. */
  expected: Expected | undefined
  /**
   * Stores the answer; runs inside a transaction, and again from the start when the database was busy.
   * @throws RetryError when the answer is unusable, ResourceError when the resource cannot be read further
   */
  answer(value: unknown, reply: Reply): void
  /** Stores the meaning of a 4xx, inside a transaction. @throws ResourceError when no declaration expects it */
  refused(status: number, message: string): void
  /** Called when the attempts are used up or the failure is permanent, inside a transaction. */
  failed(error: ParleyError): void
  /** Further work once the answer is stored, each batch in its own transaction. */
  afterwards?(): Batches | undefined
  /** Called last, whatever the outcome. `again`: neither answered nor failed, so what it reads is still due. */
  over(again: boolean): void
}

export interface Reply {
  /** Grows with every request that is sent. */
  ticket: number
  /** When the request was sent, by this machine's clock. */
  sentAt: string
  /** As `sentAt`, by the server's clock. Before that is known, it is this machine's. */
  serverSentAt: string
}

export const LANES = ['head', 'items', 'history', 'audit'] as const

export type Lane = (typeof LANES)[number]

export interface ChosenJob {
  job: Job
  lane: Lane
}

/** Creates the jobs of one feed. */
export interface Source {
  resource: ResourceName
  feed: string
  /** The route of all its requests. */
  route: string
  readonly lane: Lane
  /** Which tasks of the feed are read; default all. The others never fall due. */
  readonly bounds?: TaskBounds
  /** The next request that can be sent now, if there is one. */
  next(): Job | undefined
  /** True when, as far as it is known now, this run has no more work for the source. */
  finished(): boolean
  /** How long until the source has work that neither a segment nor a task within `bounds` shows, in ms. */
  waitMs?(): number
  /** Called when the API would take more requests than there are. The source may then split segments in progress. */
  share?(): void
  /** In the daemon, called when the resource's run has ended or a resource that it depends on has changed rows. */
  replan?(): void
}

/** The daemon's callbacks. With them the scheduler does not end when no job is left. */
export interface EndlessWork {
  /** How long until a source has a job again, in ms, if no answer and no commit gives it one before. */
  idleMs(): number
  /** Called before an outcome is applied, inside its transaction. */
  onApply(job: Job, lane: Lane): void
  /** Called after the job has ended, with any outcome. */
  onEnd(job: Job): void
  /** @param lane `retry` for a request that has failed before, and for a health check */
  onSent(request: ApiRequest, lane: Lane | 'retry', sent: Sent): void
}
