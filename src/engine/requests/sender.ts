import type { Client, Sent } from '../../api/client.ts'
import type { Permit } from '../../api/governor/in-flight.ts'
import { permitResult } from '../../api/outcome-texts.ts'
import type { EngineContext } from '../context/context.ts'
import type { EndlessWork, Job, Lane } from '../context/job.ts'
import type { GovernorPause, Reachability } from './reachability.ts'
import { countRequest, type SchedulerProgress } from './request-counts.ts'

/** Sends requests through `api/client.ts`. Passes each outcome to the counts, the governor and `reachability`. */
export interface Sender {
  /** @throws StopError when the API has been silent for too long, and an AbortError when `cancel` is aborted */
  send(sendable: Sendable, lane: Lane, permit: Permit): Promise<Sent>
  /** Number of requests in flight without an answer. */
  unanswered(): number
}

export type Sendable = Pick<Job, 'resource' | 'feed' | 'request' | 'expected'>

export interface SenderDeps {
  context: EngineContext
  client: Client
  reachability: Reachability
  progress: SchedulerProgress
  /** Present in the daemon. */
  endless: EndlessWork | undefined
  /** Cancels the requests in flight. */
  cancel: AbortSignal
  pause(): GovernorPause
}

export function createSender(deps: SenderDeps): Sender {
  const { context, reachability, progress, endless } = deps
  let unanswered = 0
  return {
    async send({ resource, feed, request, expected }, lane, permit) {
      unanswered += 1
      reachability.noteSending(request)
      const sent = await deps.client.send(request, deps.cancel).finally(() => {
        unanswered -= 1
      })
      countRequest(context, progress, resource, sent)
      if ('serverTime' in sent && sent.serverTime !== undefined)
        context.server.observe(sent.serverTime, sent.durationMs)
      endless?.onSent(request, lane, sent)
      permit.settle(permitResult(sent))
      const isDeclared = sent.kind === 'refused' && expected?.[sent.status] !== undefined
      reachability.observe({ feed, request, isDeclared }, sent)
      progress.turnedAwayInARow = reachability.refusedInARow()
      reachability.notePause(deps.pause())
      const silent = reachability.silenceError()
      if (silent) throw silent
      return sent
    },
    unanswered: () => unanswered,
  }
}
