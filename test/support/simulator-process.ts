import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import type { Change, ChangeResult } from '../../src/simulator/changes/change.ts'
import type { Faults } from '../../src/simulator/faults/faults.ts'
import type { LimitModel } from '../../src/simulator/faults/limits.ts'
import type { SimulatorOptions } from '../../src/simulator/server.ts'
import type { TruthKind } from '../../src/simulator/world/truth.ts'
import { type Fields, fieldsOf, parseExact } from './exact-json.ts'

/** The API of a made-up workspace in a separate process, with the controls for a test. */
export interface SimulatorProcess {
  url: string
  apiKey: string
  workspaceId: string
  change(change: Change): Promise<ChangeResult>
  /** Makes all changes before the next request is answered. */
  changeAtOnce(changes: readonly Change[]): Promise<ChangeResult[]>
  setFaults(faults: Faults): Promise<void>
  /** The number of requests that each of the current faults has hit, in their order. */
  hitCounts(): Promise<number[]>
  setLimit(limit: LimitModel): Promise<void>
  /** Moves the service's clock forward. */
  passTime(ms: number): Promise<void>
  /** All items of one kind that the API publishes now, with every digit. */
  truth(kind: TruthKind): Promise<Fields[]>
  /** Answers by route template and status since the last `forgetRequests`. */
  requests(): Promise<{ total: number; counts: RequestCount[] }>
  forgetRequests(): Promise<void>
  close(): Promise<void>
}

export interface RequestCount {
  route: string
  status: number
  count: number
}

const MAIN = new URL('simulator-main.mjs', import.meta.url).pathname

export async function startSimulatorProcess(options: SimulatorOptions = {}): Promise<SimulatorProcess> {
  const child = spawn(process.execPath, [MAIN, JSON.stringify(options)], {
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const complaints = text(child.stderr)
  const lines = createInterface({ input: child.stdout })
  const ready = await Promise.race([once(lines, 'line'), once(lines, 'close')])
  if (ready.length === 0) throw new Error(`the simulator did not start: ${await complaints}`)
  const { url, apiKey, workspaceId } = JSON.parse(String(ready[0]))

  async function control(method: string, path: string, body?: unknown): Promise<string> {
    const response = await fetch(`${url}/_simulator/${path}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const answer = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${answer}`)
    return answer
  }

  return {
    url,
    apiKey,
    workspaceId,
    change: async change => JSON.parse(await control('POST', 'changes', change)),
    changeAtOnce: async changes => JSON.parse(await control('POST', 'changes', changes)),
    setFaults: async faults => {
      await control('POST', 'faults', faults)
    },
    hitCounts: async () => JSON.parse(await control('GET', 'faults')).hitCounts,
    setLimit: async limit => {
      await control('POST', 'limit', limit)
    },
    passTime: async ms => {
      await control('POST', 'time', { ms })
    },
    truth: async kind => {
      const answer = await control('GET', `truth/${kind}`)
      return answer
        .split('\n')
        .filter(line => line !== '')
        .map(line => fieldsOf(parseExact(line)))
    },
    requests: async () => JSON.parse(await control('GET', 'requests')),
    forgetRequests: async () => {
      await control('DELETE', 'requests')
    },
    close: async () => {
      child.stdin.end()
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    },
  }
}
