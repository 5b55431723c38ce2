import { createServer, type RequestListener } from 'node:http'
import { join } from 'node:path'
import type { TestContext } from 'vitest'
import { type Simulator, type SimulatorOptions, startSimulator } from '../../src/simulator/server.ts'
import { emptyFolder } from '../cli/parley.ts'
import { listenUntilTestEnds } from '../support/http-server.ts'

/** Small enough to be read in a second or two, with something of everything. */
const SMALL = { messages: 150, meetings: 12, deals: 8, members: 6, accessLogs: 60, transcriptTurns: 6 }

type Ending = Pick<TestContext, 'onTestFinished'>

/** A made-up workspace. */
export function startWorkspace(options: SimulatorOptions = {}): Promise<Simulator> {
  return startSimulator({ ...SMALL, ...options })
}

/** A made-up workspace that is served until the test ends. */
export async function serveWorkspace(options: SimulatorOptions, test: Ending): Promise<Simulator> {
  const simulator = await startWorkspace(options)
  test.onTestFinished(() => simulator.close())
  return simulator
}

/** An API that answers as the test says. */
export async function serveAnswers(answer: RequestListener, test: Ending): Promise<Served> {
  const url = await listenUntilTestEnds(createServer(answer), test.onTestFinished)
  return { url, apiKey: 'demo-key', workspaceId: 'demo-workspace' }
}

export type Served = Pick<Simulator, 'url' | 'apiKey' | 'workspaceId'>

export interface Place {
  cwd: string
  /** Where the database is, or is to be. */
  file: string
  env: Record<string, string>
}

/** An empty folder, with settings in the environment for this API. */
export function placeFor({ url, apiKey, workspaceId }: Served): Place {
  const cwd = emptyFolder()
  return {
    cwd,
    file: join(cwd, 'parley.db'),
    env: { PARLEY_BASE_URL: url, PARLEY_API_KEY: apiKey, PARLEY_WORKSPACE_ID: workspaceId },
  }
}
