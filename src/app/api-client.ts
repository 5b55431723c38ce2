import { type Client, createClient } from '../api/client.ts'
import type { GovernorOptions } from '../api/governor/governor.ts'
import type { Clock } from '../clock.ts'
import type { ApiSettings } from '../config/load-settings.ts'

/** The API client alone, for commands that send requests without a warehouse. */
export function createApiClient({ api }: ApiSettings, clock: Clock): Client {
  return createClient({
    baseUrl: api.baseUrl,
    apiKey: () => api.key,
    workspaceId: api.workspaceId,
    keySource: api.keySource,
    timeoutMs: api.timeoutSeconds * 1000,
    maxResponseBytes: api.maxResponseBytes,
    clock,
  })
}

export function requestCeilings({ api }: ApiSettings): GovernorOptions['ceilings'] {
  return {
    requestsPerSecond: api.maxRequestsPerSecond,
    concurrency: api.maxConcurrency,
    requestsPerDay: api.maxRequestsPerDay,
  }
}
