import { mkdtempSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { createLog } from '../../src/base/log.ts'
import { createMetrics, type MetricSources, type Metrics } from '../../src/server/metrics.ts'
import type { Nudge } from '../../src/server/nudge.ts'
import { type StatusServer, type StatusServerDeps, startStatusServer } from '../../src/server/server.ts'

export const SECRET = 'correct-horse/battery?staple%41'

export interface Started {
  server: StatusServer
  metrics: Metrics
  /** Every line of the log, of all levels. */
  lines: string[]
  nudges: Nudge[]
  ask(method: string, path: string, options?: AskOptions): Promise<Answer>
}

export interface AskOptions {
  headers?: Record<string, string>
  body?: string | Buffer
}

export interface Answer {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
}

export const NO_SOURCES: MetricSources = {
  workspace: () => undefined,
  serverNow: () => Date.parse('2025-06-01T12:00:00Z'),
  rate: () => undefined,
  isReady: () => true,
  hasInvalidSettings: () => false,
  isApiReachable: () => undefined,
  database: () => undefined,
  snapshot: () => undefined,
  publication: () => undefined,
  resources: () => undefined,
  backlog: () => undefined,
}

/** A status server on a free port of loopback, closed when the test ends. */
export async function start(deps: Partial<StatusServerDeps> = {}): Promise<Started> {
  const { close, ...started } = await startUntilClosed(deps)
  onTestFinished(close)
  return started
}

export async function startUntilClosed(
  deps: Partial<StatusServerDeps> = {},
): Promise<Started & { close(): Promise<void> }> {
  const lines: string[] = []
  const log = await createLog({ level: 'trace', stream: { write: line => lines.push(line) } })
  const clock = deps.clock ?? systemClock()
  const metrics = createMetrics({ clock, version: '1.2.3', sources: NO_SOURCES })
  const nudges: Nudge[] = []
  const server = await startStatusServer({
    listen: { at: 'port', host: '127.0.0.1', port: 0 },
    token: undefined,
    nudgeSecret: SECRET,
    catalogue: undefined,
    log,
    clock,
    metrics,
    stuck: () => undefined,
    ready: () => undefined,
    status: () => ({ resources: [] }),
    page: async () => ({ status: 200, html: '<!doctype html><title>parley</title>' }),
    report: undefined,
    nudge: nudge => void nudges.push(nudge),
    ...deps,
  })
  const ask: Started['ask'] = (method, path, options) => askAt(server.address ?? '', method, path, options)
  const close = async () => {
    await server.close()
    metrics.close()
  }
  return { server, metrics, lines, nudges, ask, close }
}

/** One request on a separate connection to an address of the server. */
export function askAt(
  address: string,
  method: string,
  path: string,
  { headers = {}, body }: AskOptions = {},
): Promise<Answer> {
  const socketPath = /^unix:(.*)$/.exec(address)?.[1]
  const { hostname, port } = new URL(`http://${socketPath === undefined ? address : 'localhost'}`)
  const place = socketPath === undefined ? { host: hostname.replace(/^\[|\]$/g, ''), port } : { socketPath }
  return new Promise((resolve, reject) => {
    const asked = request({ ...place, method, path, headers, agent: false }, async response => {
      let text = ''
      for await (const chunk of response) text += chunk
      resolve({ status: response.statusCode ?? 0, headers: response.headers, text })
    })
    asked.on('error', reject)
    asked.end(body)
  })
}

/** A path in a new folder. */
export const freePath = (name: string): string => join(mkdtempSync(join(tmpdir(), 'parley-server-')), name)
