import { createInterface } from 'node:readline'
import type { LimitModel } from '../../src/simulator/faults/limits.ts'
import type { SimulatorOptions } from '../../src/simulator/server.ts'
import type { RequestRecord } from './limits-figures.ts'
import { startMeasured, type Usage } from './measured-process.ts'
import type { Workspace } from './workspace.ts'

/** A made-up workspace in a separate process that records when requests arrive. */
export interface RecordedWorkspace extends Pick<Workspace, 'url' | 'apiKey' | 'workspaceId'> {
  setLimit(limit: LimitModel): Promise<void>
  /** Stops serving. */
  end(): Promise<Recorded>
}

export interface Recorded {
  record: RequestRecord
  /** Delay of its timers at the 99th percentile. It is large if the process gets too little processor time. */
  lateMs: number
  simulator: Usage
}

const SERVE = new URL('serve-recorded.mjs', import.meta.url).pathname

/** @param holdMs how long an accepted request is held before it is answered */
export async function startRecorded(options: SimulatorOptions, holdMs = 0): Promise<RecordedWorkspace> {
  const { child, ended } = startMeasured([SERVE, JSON.stringify(options), String(holdMs)], process.env)
  if (!child.stdout) throw new Error('the simulator has no standard output')
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const nextLine = async () => {
    const { value, done } = await lines.next()
    if (done) await ended
    return JSON.parse(value)
  }
  const ready: Pick<Workspace, 'url' | 'apiKey' | 'workspaceId'> = await nextLine()
  return {
    ...ready,
    async setLimit(limit) {
      const response = await fetch(`${ready.url}/_simulator/limit`, {
        method: 'POST',
        body: JSON.stringify(limit),
      })
      if (!response.ok) throw new Error(`the simulator answers ${response.status} to a new limit`)
      await response.arrayBuffer()
    },
    async end() {
      child.stdin?.end()
      const { lateMs, ...record }: RequestRecord & { lateMs: number } = await nextLine()
      return { record, lateMs, simulator: await ended }
    },
  }
}
