import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Answer, generalError } from '../http/answers.ts'
import { type Admission, createLimiter, type LimitModel, limitHeaders } from './limits.ts'

/** Who may ask, and how often: the valid key and the rate limit. */
export interface AccessControl {
  admit(response: ServerResponse, elapsedMs: number): Admission
  /** The answer to a request that is not allowed; undefined when the request is allowed. */
  refusalOf(request: IncomingMessage, admission: Admission): Answer | undefined
  headers(admission: Admission, nowMs: number): Record<string, string>
  apiKey(): string
  setApiKey(key: string): void
  setLimit(limit: LimitModel): void
}

export interface AccessControlOptions {
  apiKey: string
  limit: LimitModel
  workspaceId: string
  foreignWorkspaceStatus: number
}

export function createAccess(options: AccessControlOptions): AccessControl {
  let { apiKey, limit } = options
  let limiter = createLimiter(limit)
  return {
    admit: (response, elapsedMs) => {
      const admittedBy = limiter
      const admission = limiter.admit(elapsedMs)
      // A client that disconnected during the latency has already closed the response, and `close` comes only once.
      if (admission.isAllowed && response.closed) admittedBy.release()
      else if (admission.isAllowed) response.once('close', () => admittedBy.release())
      return admission
    },
    refusalOf: ({ headers }, { isAllowed }) => {
      if (!isAllowed) return generalError(429, 'Too Many Requests')
      const key = headers['x-api-key']
      if (key === undefined || key === '') return generalError(401, 'Missing X-Api-Key header')
      if (key !== apiKey) return generalError(401, 'Invalid API key')
      const workspace = headers['x-workspace-id']
      if (workspace === undefined || workspace === '')
        return generalError(400, 'Missing X-Workspace-Id header')
      return workspace === options.workspaceId
        ? undefined
        : generalError(options.foreignWorkspaceStatus, 'Forbidden')
    },
    headers: (admission, nowMs) => limitHeaders(limit, admission, nowMs),
    apiKey: () => apiKey,
    setApiKey: key => {
      apiKey = key
    },
    setLimit: model => {
      limit = model
      limiter = createLimiter(model)
    },
  }
}
