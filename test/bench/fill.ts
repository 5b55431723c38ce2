import { join } from 'node:path'
import { startMeasured, type Usage } from './measured-process.ts'
import type { Workspace } from './workspace.ts'

export interface FillOptions {
  folder: string
  /** The built command line program. */
  program: string
  /** More settings, as environment variables. */
  settings?: Readonly<Record<string, string>>
}

/** Fills the warehouse parley.db in the folder by a backfill. */
export async function fillWarehouse(
  { url, apiKey, workspaceId }: Workspace,
  { folder, program, settings }: FillOptions,
): Promise<Usage> {
  process.stderr.write('filling a warehouse, which takes some minutes\n')
  const { child, ended } = startMeasured(
    [program, 'backfill', '--database', join(folder, 'parley.db'), '--log-level', 'error'],
    {
      PATH: process.env['PATH'],
      PARLEY_BASE_URL: url,
      PARLEY_API_KEY: apiKey,
      PARLEY_WORKSPACE_ID: workspaceId,
      ...settings,
    },
  )
  child.stdout?.resume()
  return ended
}
