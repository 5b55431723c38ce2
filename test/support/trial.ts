import { join } from 'node:path'
import type { SimulatorOptions } from '../../src/simulator/server.ts'
import { compareWarehouse, type Difference } from './compare.ts'
import { type ExpectedOptions, expectedWarehouse } from './expected.ts'
import { type Ended, newFolder, type ParleyProcess, startParley } from './parley-process.ts'
import { type SimulatorProcess, startSimulatorProcess } from './simulator-process.ts'
import { startTap, type Tap } from './tap.ts'
import { readTruth } from './truth.ts'

/** One made-up workspace, one database file, and parley between them. */
export interface Trial {
  simulator: SimulatorProcess
  tap: Tap
  database: string
  start(...args: string[]): ParleyProcess
  /** Starts `parley daemon` with the environment of the trial and `env`. */
  startDaemon(env?: Readonly<Record<string, string>>): ParleyProcess
  /** Runs `parley backfill --json` to its end. */
  backfill(...args: string[]): Promise<Ended>
  /** Differences between the warehouse and what the simulator publishes now. */
  differences(options?: ExpectedOptions): Promise<Difference[]>
  close(): Promise<void>
}

/** A small workspace with every kind of item, several pages of most lists, and equal times at page ends. */
export const SMALL: SimulatorOptions = {
  messages: 260,
  meetings: 16,
  deals: 14,
  companies: 12,
  contacts: 30,
  members: 12,
  collections: 8,
  customRecords: 6,
  accessLogs: 130,
  transcriptTurns: 6,
}

/** A workspace small enough to be read many times. */
export const TINY: SimulatorOptions = {
  messages: 125,
  meetings: 9,
  deals: 6,
  companies: 6,
  contacts: 12,
  members: 9,
  teams: 3,
  collections: 4,
  playbooks: 3,
  customRecords: 2,
  accessLogs: 40,
  transcriptTurns: 4,
}

/** Scales the two minutes between a denial and its confirmation down to a second, the shortest wait. */
const SCALE = { PARLEY_SYNC_INTERVAL_SCALE: '0.005' }

/** `env`: parley's environment, in addition to the address of the API. */
export async function startTrial(
  options: SimulatorOptions = {},
  env: Readonly<Record<string, string>> = {},
): Promise<Trial> {
  const simulator = await startSimulatorProcess({ ...SMALL, ...options })
  const tap = await startTap(simulator.url)
  const database = join(newFolder(), 'parley.db')
  const service = { ...simulator, url: tap.url }
  const start = (...args: string[]): ParleyProcess =>
    startParley(['backfill', '--json', '--database', database, ...args], service, { ...SCALE, ...env })
  return {
    simulator,
    tap,
    database,
    start,
    startDaemon: more => startParley(['daemon', '--database', database], service, { ...env, ...more }),
    backfill: (...args) => start(...args).ended,
    differences: async expected =>
      compareWarehouse(database, expectedWarehouse(await readTruth(simulator), expected)),
    close: async () => {
      await tap.close()
      await simulator.close()
    },
  }
}

/** Sends the signal just before the n-th request is passed on, or after the n-th answer has started. */
export function killAt(
  trial: Trial,
  process: ParleyProcess,
  { number, phase, signal = 'SIGKILL' }: KillPoint,
): void {
  const from = phase === 'request' ? trial.tap.requests.length : trial.tap.answers()
  const strike = (seen: number): void => {
    if (seen - from === number) process.kill(signal)
  }
  if (phase === 'request') trial.tap.onRequest = strike
  else trial.tap.onAnswer = strike
}

export interface KillPoint {
  number: number
  phase: 'request' | 'answer'
  /** Default SIGKILL. */
  signal?: 'SIGKILL' | 'SIGTERM'
}

/** From now on, no request or answer sends a signal. */
export function stopKilling({ tap }: Trial): void {
  tap.onRequest = () => undefined
  tap.onAnswer = () => undefined
}
