import { unauthorized } from '../../api/access-errors.ts'
import type { Client, Sent } from '../../api/client.ts'
import { failureText } from '../../api/outcome-texts.ts'
import type { ApiRequest } from '../../api/request.ts'
import { isoInstant } from '../../base/clock.ts'
import { ParleyError, ResourceError, RetryError, StopError } from '../../base/errors.ts'
import { FOREIGN_OBJECT } from '../../store/migrations/foreign-objects.ts'
import type { EngineContext } from '../context/context.ts'
import type { ChosenJob, EndlessWork, Job } from '../context/job.ts'
import { backOff } from '../due/back-off.ts'
import { endTries } from '../due/retries.ts'

/**
 * Stores the answer of a request, or that its job has failed. A page's rows, follow-ups and checkpoint commit in one
 * transaction. Only the end of a long pass over a whole list takes several (`finishJob`, modes/snapshot/pass-end.ts).
 */

export interface OutcomeDeps {
  context: EngineContext
  client: Pick<Client, 'access'>
  endless: EndlessWork | undefined
  cancel: AbortSignal
  /** See `EngineDeps.saveLearned`. */
  saveLearned?: () => void
}

/**
 * Applies an outcome to its job inside a transaction. For a page, its rows, its follow-ups and the checkpoint commit
 * here (`modes/apply-page.ts`). Returns the error, if there is one.
 */
export async function applyOutcome(
  { context, client, endless, saveLearned }: OutcomeDeps,
  { job, lane }: ChosenJob,
  sent: Sent,
  ticket: number,
): Promise<ParleyError | undefined> {
  if (sent.kind === 'retry') {
    return new RetryError(failureText(sent), { code: sent.cause })
  }
  if (sent.kind === 'fault') return new ResourceError(sent.message, { code: sent.code })
  if (sent.kind === 'unauthorized') return unauthorized(client.access, sent.message)
  const reply = {
    ticket,
    sentAt: isoInstant(sent.startedAt),
    // Not converted from `startedAt`: this machine's clock may have jumped since.
    serverSentAt: isoInstant(context.server.now() - sent.durationMs),
  }
  try {
    await context.store.transaction(() => {
      endless?.onApply(job, lane)
      context.urgent.inLane(lane, () => {
        if (sent.kind === 'answer') context.parsing.answer(() => job.answer(sent.value, reply))
        else if (sent.kind === 'refused') job.refused(sent.status, sent.message)
        else sent satisfies never
        if (job.reads) endTries(context, job.reads)
      })
      saveLearned?.()
    })
    return undefined
  } catch (error) {
    const failure = handlerError(error, job)
    if (endless && failure.code === FOREIGN_OBJECT) return ofOneFeed(failure)
    if (failure !== error) context.log.error('Failed to store an answer', { resource: job.resource, error })
    return failure
  }
}

/**
 * Limits an error of a foreign trigger or index to one feed. In the daemon, the feed into whose tables the trigger
 * refuses to write waits, and other feeds are read. A backfill ends and names the trigger.
 */
function ofOneFeed({ code, message, hint, cause }: ParleyError): ResourceError {
  return new ResourceError(message, { code, ...(hint !== undefined && { hint }), cause })
}

/** Does the further work of a job whose answer is stored. */
export async function finishJob(
  { context, cancel }: Pick<OutcomeDeps, 'context' | 'cancel'>,
  job: Job,
): Promise<void> {
  const batches = job.afterwards?.()
  while (batches && !cancel.aborted && !(await context.store.transaction(() => batches.next().done)));
}

/** The code of the error when a backfill leaves a feed to the next run, since its route keeps failing. */
export const ROUTE_FAILING = 'route-silent'

/** Stores that the job has failed for good, and ends it. */
export async function failJob(
  { context, endless }: Pick<OutcomeDeps, 'context' | 'endless'>,
  { job, lane }: ChosenJob,
  error: ParleyError,
): Promise<void> {
  const named = withRequest(error, job.request)
  try {
    await context.store.transaction(() => {
      endless?.onApply(job, lane)
      if (job.reads) endTries(context, job.reads)
      const { resource, feed: id, scope = '' } = job
      // No smaller request helps. The feed is read soon after the trigger is gone.
      if (error.code === FOREIGN_OBJECT) backOff(context, { resource, id }, error, { scope })
      else if (error.code === ROUTE_FAILING) backOff(context, { resource, id }, named)
      else job.failed(named)
    })
  } catch (thrown) {
    const failure = handlerError(thrown, job)
    if (failure instanceof StopError) throw failure
    context.log.error('Failed to record a failed request; its feed waits before the next request', {
      resource: job.resource,
      error: failure,
    })
    context.backoffs.failed(job.feed, job.scope ?? '')
  }
  job.over(false)
}

/** The errors of failed jobs. Pure. */

/** Longer paths are cut: ids may have any length. */
const PATH_LENGTH = 150

/**
 * Adds the method and path of the request to the error. A path holds only ids; the query is left out, since it may hold
 * names and addresses.
 */
export function withRequest(error: ParleyError, { path }: ApiRequest): ParleyError {
  const Kind =
    error instanceof RetryError ? RetryError : error instanceof ResourceError ? ResourceError : undefined
  if (Kind === undefined) return error
  const { code, hint, cause, message } = error
  const shown = path.length > PATH_LENGTH ? `${path.slice(0, PATH_LENGTH)}…` : path
  return new Kind(`GET ${shown}: ${message}`, { code, ...(hint !== undefined && { hint }), cause })
}

/** Converts an exception of a handler into an error that fails only its job: other jobs continue. */
export function handlerError(thrown: unknown, { feed }: Pick<Job, 'feed'>): ParleyError {
  if (thrown instanceof ParleyError) return thrown
  const name = thrown instanceof Error ? thrown.name : typeof thrown
  return new ResourceError(`parley failed to handle the answer (${name})`, {
    code: 'fault',
    hint: `This is a bug in parley (${feed}): please report it with the stack trace from the log.`,
    cause: thrown,
  })
}
