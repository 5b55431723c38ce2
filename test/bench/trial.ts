import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { BareResult } from './bare-loop.ts'
import { type LeastRequests, leastRequests } from './least-requests.ts'
import { startMeasured, type Usage } from './measured-process.ts'
import { measureSearch, type SearchCost } from './search-cost.ts'
import { measureWarehouse, type WarehouseSize } from './warehouse-size.ts'
import type { Served, Workspace } from './workspace.ts'

export interface TrialOptions {
  folder: string
  /** The built command line program. */
  program: string
  withTexts: boolean
  repeat: number
  /** Whether to measure the bare loop as well. */
  withBare: boolean
}

/** Measures backfills of one size. The runs alternate, and each figure is the best of its runs. */
export interface Trial {
  parley: Usage
  size: WarehouseSize
  served: Pick<Served, 'total' | 'bytes'>
  least: LeastRequests
  bare: BareResult | undefined
  /** The runs build no full-text indices; this is their additional cost. */
  search: SearchCost
}

/** Sizes that grow with the number of messages. The rest of the workspace is small. */
const LISTS = ['activities', 'messages']

export async function runTrial(workspace: Workspace, options: TrialOptions): Promise<Trial> {
  const database = join(options.folder, 'parley.db')
  const bareDatabase = join(options.folder, 'bare.db')
  const runs: Usage[] = []
  const bareRuns: BareResult[] = []
  for (let turn = 0; turn < options.repeat; turn += 1) {
    removeDatabase(database)
    await workspace.forgetRequests()
    runs.push(await backfill(workspace, options, database))
    if (!options.withBare) continue
    bareRuns.push(await bareLoop(database, bareDatabase))
    removeDatabase(bareDatabase)
  }
  const { total, bytes } = await workspace.requests()
  const size = measureWarehouse(database)
  const search = await measureSearch(database)
  removeDatabase(database)
  return {
    parley: { ...fastest(runs), peakKiB: Math.max(...runs.map(({ peakKiB }) => peakKiB)) },
    size,
    search,
    served: { total, bytes },
    least: await leastRequests(workspace, options.withTexts),
    bare: bareRuns.length > 0 ? fastest(bareRuns) : undefined,
  }
}

function backfill(workspace: Workspace, options: TrialOptions, database: string): Promise<Usage> {
  const resources = options.withTexts ? [...LISTS, 'message_bodies'] : LISTS
  const { child, ended } = startMeasured(
    [
      options.program,
      'backfill',
      '--only',
      resources.join(','),
      '--database',
      database,
      '--search',
      'false',
      '--log-level',
      'error',
    ],
    {
      PATH: process.env['PATH'],
      PARLEY_BASE_URL: workspace.url,
      PARLEY_API_KEY: workspace.apiKey,
      PARLEY_WORKSPACE_ID: workspace.workspaceId,
    },
  )
  child.stdout?.resume()
  return ended
}

const BARE_MAIN = new URL('bare-main.ts', import.meta.url).pathname
const TSX = import.meta.resolve('tsx')

async function bareLoop(finished: string, path: string): Promise<BareResult> {
  const { child, ended } = startMeasured(['--import', TSX, BARE_MAIN, finished, path], process.env)
  const result = child.stdout ? text(child.stdout) : ''
  await ended
  return JSON.parse(await result) as BareResult
}

function fastest<T extends { wallMs: number }>(runs: readonly T[]): T {
  return runs.reduce((best, run) => (run.wallMs < best.wallMs ? run : best))
}

function removeDatabase(path: string): void {
  for (const suffix of ['', '-wal', '-shm', '-lock']) rmSync(path + suffix, { force: true })
}
