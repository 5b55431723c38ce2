import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { startMeasured, type Usage } from './measured-process.ts'
import { measureWarehouse, type WarehouseSize } from './warehouse-size.ts'
import type { Workspace } from './workspace.ts'

/** Measures how much time and space full-text search and the typed CRM tables add to a complete backfill. */
export interface Features {
  with: FeatureRun
  without: FeatureRun
}

export interface FeatureRun {
  usage: Usage
  size: WarehouseSize
}

export interface FeaturesOptions {
  folder: string
  /** The built command line program. */
  program: string
  repeat: number
}

const OFF = { PARLEY_SEARCH_ENABLED: 'false', PARLEY_CRM_TABLES: 'false' }

/** The runs of both kinds alternate, and the fastest run of each kind counts. */
export async function runFeatures(
  workspace: Workspace,
  { folder, program, repeat }: FeaturesOptions,
): Promise<Features> {
  const runs: Features[] = []
  const run = (settings: Readonly<Record<string, string>>) =>
    backfill(workspace, program, join(folder, 'features.db'), settings)
  for (let turn = 0; turn < repeat; turn += 1) runs.push({ without: await run(OFF), with: await run({}) })
  const fastest = (kind: keyof Features) =>
    runs.map(each => each[kind]).reduce((best, each) => (each.usage.wallMs < best.usage.wallMs ? each : best))
  return { with: fastest('with'), without: fastest('without') }
}

async function backfill(
  workspace: Workspace,
  program: string,
  database: string,
  settings: Readonly<Record<string, string>>,
): Promise<FeatureRun> {
  for (const suffix of ['', '-wal', '-shm', '-lock']) rmSync(database + suffix, { force: true })
  const { child, ended } = startMeasured(
    [program, 'backfill', '--database', database, '--log-level', 'error'],
    {
      PATH: process.env['PATH'],
      PARLEY_BASE_URL: workspace.url,
      PARLEY_API_KEY: workspace.apiKey,
      PARLEY_WORKSPACE_ID: workspace.workspaceId,
      ...settings,
    },
  )
  child.stdout?.resume()
  const usage = await ended
  return { usage, size: measureWarehouse(database) }
}
