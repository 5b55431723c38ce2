import { type Client, createClient } from '../api/client.ts'
import { createGovernor, type Governor, type GovernorOptions } from '../api/governor/governor.ts'
import { type ApiReader, type ApiReaderDeps, createApiReader } from '../api/reader.ts'
import { type Clock, isoInstant } from '../base/clock.ts'
import type { ApiSettings } from '../config/loaded-settings.ts'
import { clockText } from '../terminal/wording.ts'

export function createApiClient({ api, proxies }: ApiSettings, clock: Clock): Client {
  return createClient({
    baseUrl: api.baseUrl,
    apiKey: () => api.key,
    workspaceId: api.workspaceId,
    keySource: api.keySource,
    timeoutMs: api.timeoutSeconds * 1000,
    maxResponseBytes: api.maxResponseBytes,
    proxies,
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

export interface ApiReaderOptions extends Pick<ApiReaderDeps, 'clock' | 'signal' | 'maxAttempts'> {
  settings: ApiSettings
  /** The limits of the API as far as known, and the requests of the day that are used. */
  limits: Pick<GovernorOptions, 'initial' | 'usedToday'>
  stderr: { write(text: string): unknown }
}

/** Lends a reader of the API to a command that sends requests without opening a warehouse, and then closes it. */
export async function withApiReader<T>(
  { settings, limits, stderr, ...options }: ApiReaderOptions,
  use: (parts: { reader: ApiReader; client: Client; governor: Governor }) => Promise<T>,
): Promise<T> {
  const parts = { clock: options.clock, random: Math.random }
  const governor = createGovernor({ ...parts, ...limits, ceilings: requestCeilings(settings) })
  const client = createApiClient(settings, options.clock)
  const reader = createApiReader({
    ...parts,
    ...options,
    client,
    governor,
    giveUpMs: settings.api.giveUpSeconds * 1000,
    onPause: until =>
      stderr.write(
        `parley: The API throttles requests (429); they are paused until ${clockText(isoInstant(until), options.clock.now())}\n`,
      ),
  })
  try {
    return await use({ reader, client, governor })
  } finally {
    await client.close()
    governor.close()
  }
}
