import { createServer, type Server } from 'node:http'
import { systemClock } from '../base/clock.ts'
import { DAY, parseInstant } from './base/instants.ts'
import type { Scene, Sizes } from './base/scene.ts'
import type { Controls } from './control.ts'
import { createReplica } from './faults/replica.ts'
import { createService, DEFAULT_KEY, type ServiceOptions } from './service.ts'
import { createWorld, sizesOf, type World } from './world/world.ts'

export interface SimulatorOptions extends ServiceOptions, Partial<Sizes> {
  /** Default 1. */
  seed?: number
  /** Default 0: any free port. */
  port?: number
  workspaceId?: string
  botConfigured?: boolean
  integrations?: boolean
  /** End of the history and start of the service's clock: an instant, or `real`. Default 2026-06-30T12:00:00Z. */
  now?: string
  historyDays?: number
  /** Leaves out hostile names and values. Default false. */
  tidy?: boolean
  /** Adds what makes questions about real workspaces hard. Default false. */
  realistic?: boolean
  /** Pending overviews become COMPLETED this long after the start. Default: only by a change. */
  overviewsCompleteAfterMs?: number
}

export interface Simulator extends Controls {
  /** Without a slash at the end. */
  url: string
  /** The valid key at the start. `setApiKey` does not change this field. */
  apiKey: string
  workspaceId: string
  /** Closes every connection. */
  close(): Promise<void>
}

const DEFAULT_NOW = '2026-06-30T12:00:00Z'

/** A simulator that listens nowhere yet. */
export interface IdleSimulator extends Controls, Pick<Simulator, 'apiKey' | 'workspaceId'> {
  server: Server
}

/** Listens on 127.0.0.1. Throws a RangeError when `now` is not an instant. */
export async function startSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  const { server, ...simulator } = createSimulator(options)
  server.keepAliveTimeout = 60_000
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port ?? 0, '127.0.0.1', resolve)
  })
  const address = server.address()
  const port = address !== null && typeof address === 'object' ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    ...simulator,
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** Throws a RangeError when `now` is not an instant. */
export function createSimulator(options: SimulatorOptions = {}): IdleSimulator {
  const { scene, passTime } = createScene(options)
  const create = (of: Scene): World =>
    createWorld(of, {
      overviewsCompleteAfterMs: options.overviewsCompleteAfterMs,
      botConfigured: options.botConfigured ?? true,
      integrations: options.integrations ?? true,
    })
  const replica = createReplica({ scene, create })
  const service = createService({ scene, replica, passTime }, options)
  const server = createServer((request, response) => {
    service.handle(request, response).catch((fault: unknown) => {
      // A defect of the simulator must not look like a requested fault.
      if (response.headersSent) response.destroy()
      else response.writeHead(500).end(`simulator: ${fault instanceof Error ? fault.stack : 'fault'}`)
    })
  })
  return {
    server,
    apiKey: options.apiKey ?? DEFAULT_KEY,
    workspaceId: scene.workspaceId,
    ...service.controls,
  }
}

function createScene(options: SimulatorOptions): { scene: Scene; passTime(ms: number): void } {
  const clock = options.clock ?? systemClock()
  const startedAt = clock.now()
  let passed = 0
  const now = options.now ?? DEFAULT_NOW
  const end = now === 'real' ? startedAt * 1_000 : parseInstant(now)
  if (end === undefined)
    throw new RangeError(`now must be an RFC 3339 date-time or "real", not ${JSON.stringify(now)}`)
  const scene = {
    seed: options.seed ?? 1,
    start: end - (options.historyDays ?? 730) * DAY,
    end,
    sizes: sizesOf(options),
    workspaceId: options.workspaceId ?? 'demo-workspace',
    isTidy: options.tidy ?? false,
    isRealistic: options.realistic ?? false,
    now: () => end + (clock.now() - startedAt + passed) * 1_000,
  }
  return {
    scene,
    passTime: ms => {
      passed += ms
    },
  }
}
