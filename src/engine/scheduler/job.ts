import type { Sent } from '../../api/client.ts'
import type { ApiRequest } from '../../api/request.ts'
import type { Expected, ResourceName } from '../../catalog/resource.ts'
import type { ParleyError } from '../../errors.ts'
import type { Batches } from './batches.ts'

/**
 * The unit of work: one request and what to do with its answer. Lists are read page by page with the checkpoint in
 * the database, so every page is a job of its own and nothing waits for anything but its own answer.
 */
export interface Job {
  resource: ResourceName
  feed: string
  /** Where each scope of the feed goes its own way. */
  scope?: string
  request: ApiRequest
  /** How often it is tried at most before it fails; as often as its failure deserves where this says nothing. */
  attempts?: number
  /** Statuses that are declared to be answers. */
  expected: Expected | undefined
  /**
   * Stores the answer; runs inside a transaction, and again from the start when the database was busy.
   * @throws RetryError when the answer is none, ResourceError when the resource cannot go on
   */
  answer(value: unknown, reply: Reply): void
  /** Stores what a 4xx means, inside a transaction. @throws ResourceError when it was not expected */
  refused(status: number, message: string): void
  /** The job is given up: its attempts are used up or the fault is lasting. Runs inside a transaction. */
  failed(error: ParleyError): void
  /** What is left to do once the answer is stored, each batch in a transaction of its own. */
  afterwards?(): Batches | undefined
  /** Whatever happened, the job is over. */
  over(): void
}

export interface Reply {
  /** Order of the request among all. */
  ticket: number
  /** When the request was sent: by this machine's clock and, as far as known, by the server's. */
  sentAt: string
  serverSentAt: string
}

export const LANES = ['head', 'retry', 'items', 'history', 'audit'] as const

export type Lane = (typeof LANES)[number]

/** Where jobs come from: one for each feed. */
export interface Source {
  resource: ResourceName
  feed: string
  readonly lane: Exclude<Lane, 'retry'>
  /** The next request that can be made now, if there is one. */
  next(): Job | undefined
  /** True when nothing is to be done any more in this run, by what is known now. */
  finished(): boolean
  /** The API would take more requests than there are: what is under way may be shared among more of them. */
  share?(): void
  /** In the daemon: its resource's run is over, or one that it depends on has brought something. It plans anew. */
  rest?(): void
}

/** What the daemon wants to know of the jobs that are done for it. */
export interface EndlessWork {
  /** How often it is looked whether something has fallen due. */
  tickMs: number
  /** An outcome is about to be applied, inside its transaction. */
  applying(job: Job, lane: Lane): void
  /** The job has ended, whatever came of it. */
  over(job: Job): void
  sent(request: ApiRequest, lane: Lane, sent: Sent): void
}
