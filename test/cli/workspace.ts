import { cpSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { basename, join } from 'node:path'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { type Simulator, type SimulatorOptions, startSimulator } from '../../src/simulator/server.ts'
import { listenUntilTestEnds } from '../support/http-server.ts'
import { emptyFolder, parley } from './parley.ts'

/** Small enough to be read in a second, with items of every kind. */
const SMALL = {
  messages: 40,
  meetings: 8,
  deals: 3,
  companies: 2,
  contacts: 3,
  members: 4,
  teams: 2,
  collections: 2,
  playbooks: 1,
  customRecords: 2,
  accessLogs: 10,
  transcriptTurns: 4,
}

/** The part of a test's context that its servers need. Tests that run at the same time have one each. */
export interface Test {
  onTestFinished(close: () => Promise<void>): void
}

/** A made-up workspace that is served until the test ends. */
export async function workspace(test: Test, options: SimulatorOptions = {}): Promise<Simulator> {
  const simulator = await startSimulator({ ...SMALL, ...options })
  test.onTestFinished(() => simulator.close())
  return simulator
}

export interface Place {
  cwd: string
  file: string
  env: Record<string, string>
}

/** An empty folder with settings in the environment for this API. */
export function placeFor({
  url,
  apiKey,
  workspaceId,
}: Pick<Simulator, 'url' | 'apiKey' | 'workspaceId'>): Place {
  const cwd = emptyFolder()
  return {
    cwd,
    file: join(cwd, 'parley.db'),
    env: { PARLEY_BASE_URL: url, PARLEY_API_KEY: apiKey, PARLEY_WORKSPACE_ID: workspaceId },
  }
}

/**
 * The same with a warehouse of a made-up workspace, which a backfill has just filled. Where no clock is given, the
 * backfill runs once in this process, and each test has a copy of its files: tests share the service and only read it.
 */
export async function backfilled(
  test: Test,
  { env = {}, ...options }: SimulatorOptions & { env?: Record<string, string> } = {},
): Promise<Place> {
  if (options.now !== undefined) return backfill(await workspace(test, options), env)
  const wanted = JSON.stringify([options, env])
  const known = filled.get(wanted) ?? startSimulator({ ...SMALL, ...options }).then(api => backfill(api, env))
  filled.set(wanted, known)
  const source = await known
  const cwd = emptyFolder()
  cpSync(source.cwd, cwd, { recursive: true })
  return { cwd, file: join(cwd, basename(source.file)), env: source.env }
}

const filled = new Map<string, Promise<Place>>()

async function backfill(api: Simulator, env: Record<string, string>): Promise<Place> {
  const place = placeFor(api)
  const { status, stderr } = await parley(['backfill'], { cwd: place.cwd, env: { ...place.env, ...env } })
  if (status !== EXIT_STATUS.done) throw new Error(`The backfill ended with ${status}: ${stderr}`)
  return place
}

export interface OtherApi {
  url: string
  apiKey: string
  workspaceId: string
  /** Resolves at the first request. */
  asked: Promise<void>
}

/** An API of another kind, such as one that never answers. */
export async function api(test: Test, answer: RequestListener): Promise<OtherApi> {
  let ask: () => void = () => undefined
  const asked = new Promise<void>(resolve => {
    ask = resolve
  })
  const server = createServer((request, response) => {
    ask()
    answer(request, response)
  })
  const url = await listenUntilTestEnds(server, test.onTestFinished)
  return { url, apiKey: 'demo-key', workspaceId: 'demo-workspace', asked }
}

/** An API that takes every request and never answers. */
export const silentApi = (test: Test) => api(test, () => undefined)
