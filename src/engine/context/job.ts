import type { Sent } from '../../api/client.ts'
import type { ApiRequest } from '../../api/request.ts'
import type { ParleyError } from '../../base/errors.ts'
import type { ItemFeed, StatusMeanings } from '../../declare/resource.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import type { Segment } from '../../store/sync/segments.ts'
import type { TaskBounds, TaskOrder } from '../../store/sync/tasks/due-tasks.ts'
import type { Task } from '../../store/sync/tasks/task.ts'

/** Long work on the database. It yields between batches, so that other work gets its turn on the event loop. */
export type Batches = Generator<undefined, void, undefined>

/**
 * What a request reads. If the request fails, these rows store the failure and the time of the next try
 * (`due/retries.ts`).
 */
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
  /** True for a part of what failed. It has few attempts, since one part is expected to fail and is divided further. */
  isPart?: boolean
  /** Whether the part of a list that it reads, or another part since the list was last answered, has failed. */
  hasFailed?: boolean
  /** Statuses with a declared meaning. */
  expected: StatusMeanings | undefined
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
  /**
   * Called last, whatever the outcome. `again`: the request was neither answered nor given up, so its rows are still
   * due.
   */
  over(again: boolean): void
}

export interface Reply {
  /** Grows with every request that is sent. */
  ticket: number
  /** When the request was sent, by this machine's clock. */
  sentAt: string
  /** As `sentAt`, by the server's clock, or by this machine's clock while the server's is not known. */
  serverSentAt: string
}

export const LANES = ['head', 'items', 'history', 'audit'] as const

export type Lane = (typeof LANES)[number]

export interface ChosenJob {
  job: Job
  lane: Lane
}

/** Which keys of a feed are read by themselves. */
export interface Keys extends TaskBounds {
  resource: ResourceName
  feed: string
  /** In a backfill, true: all keys in each round; false: only those that are due or wait for the API. */
  everyRound: boolean
  /** Set where stored rows may lack their first read. */
  items?: ItemFeed
}

export interface TaskQuery extends Omit<Keys, 'items'> {
  limit: number
  /** Which tasks are taken when more than `limit` are due. A backfill always takes the newest first. */
  first: TaskOrder
  /** Scopes that cannot be read now. */
  exceptScopes?: readonly string[]
}

/** Creates the jobs of one feed. */
export interface Source {
  resource: ResourceName
  feed: string
  /** The route of all its requests. */
  route: string
  readonly lane: Lane
  /** Of a source of single reads: which keys are read. The others never fall due. */
  readonly keys?: Keys
  /** The next request that can be sent now, if there is one. */
  next(): Job | undefined
  /**
   * How long until there is something to read, in ms: 0 when something is due, even if it waits for another source.
   * Infinite when nothing falls due; in a backfill, when nothing more falls due in this run.
   */
  waitMs(): number
  /** Whether a job of the source is not over. */
  isBusy(): boolean
  /** Called when the API would take more requests than there are. The source may then split segments in progress. */
  share?(): void
  /** In the daemon, called when the resource's run has ended or a resource that it depends on has changed rows. */
  replan?(): void
}

/** The daemon's callbacks. With them the scheduler does not end when no job is left. */
export interface EndlessWork {
  /** Called before an outcome is applied, inside its transaction. */
  onApply(job: Job, lane: Lane): void
  /** Called after the job has ended, with any outcome. */
  onEnd(job: Job): void
  /** @param lane `retry` for a request that has failed before, and for a health check */
  onSent(request: ApiRequest, lane: Lane | 'retry', sent: Sent): void
}
