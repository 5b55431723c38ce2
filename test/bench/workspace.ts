import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import type { Change, ChangeResult } from '../../src/simulator/changes/change.ts'
import type { LoggedRequest } from '../../src/simulator/http/requests.ts'
import type { SimulatorOptions } from '../../src/simulator/server.ts'
import { startMeasured, type Usage } from './measured-process.ts'

/** A made-up workspace that a separate process serves. */
export interface Workspace {
  url: string
  apiKey: string
  workspaceId: string
  change(change: Change): Promise<ChangeResult>
  requests(): Promise<Served>
  forgetRequests(): Promise<void>
  /** The number of items of each kind. */
  counts(): Promise<Record<string, number>>
  /** The items of one kind, as JSON. */
  lines(kind: string): AsyncIterable<string>
  close(): Promise<Usage>
}

export interface Served {
  total: number
  /** Bytes of JSON, before compression. */
  bytes: number
  counts: readonly RouteCount[]
  /** The last hundred requests, the oldest first. */
  recent: readonly LoggedRequest[]
}

export interface RouteCount {
  route: string
  status: number
  count: number
}

const SERVE = new URL('serve.mjs', import.meta.url).pathname

/** @param agoMs how long ago its clock started, at the end of its history */
export async function startWorkspace(options: SimulatorOptions, agoMs = 0): Promise<Workspace> {
  const { child, ended } = startMeasured([SERVE, JSON.stringify(options), String(agoMs)], process.env)
  if (!child.stdout) throw new Error('the simulator has no standard output')
  const line = once(createInterface({ input: child.stdout }), 'line')
  const [ready] = await Promise.race([line, ended.then(() => [''])])
  const { url, apiKey, workspaceId } = JSON.parse(String(ready)) as Workspace
  const control = async (path: string, method = 'GET', body?: unknown) => {
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    const response = await fetch(`${url}/_simulator/${path}`, { method, ...sent })
    if (!response.ok) throw new Error(`the simulator answers ${response.status} to ${method} ${path}`)
    return response
  }
  return {
    url,
    apiKey,
    workspaceId,
    change: async change => (await (await control('changes', 'POST', change)).json()) as ChangeResult,
    requests: async () => (await (await control('requests')).json()) as Served,
    forgetRequests: async () => {
      await control('requests', 'DELETE')
    },
    counts: async () => (await (await control('truth')).json()) as Record<string, number>,
    async *lines(kind) {
      const { body } = await control(`truth/${kind}`)
      if (body) yield* createInterface({ input: Readable.fromWeb(body) })
    },
    close: () => {
      child.stdin?.end()
      return ended
    },
  }
}
