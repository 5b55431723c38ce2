import { TRUTH_KINDS, type TruthKind } from '../../src/simulator/world/truth.ts'
import type { Fields } from './exact-json.ts'
import type { SimulatorProcess } from './simulator-process.ts'

/** Everything that the API publishes at one moment, by kind, in the API's own shapes. */
export type Truth = Readonly<Record<TruthKind, readonly Fields[]>>

export async function readTruth(simulator: Pick<SimulatorProcess, 'truth'>): Promise<Truth> {
  const entries: [string, readonly Fields[]][] = []
  for (const kind of TRUTH_KINDS) entries.push([kind, await simulator.truth(kind)])
  return Object.fromEntries(entries) as Truth
}
