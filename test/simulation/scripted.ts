import type { ResourceName } from '../../src/declare/resource-names.ts'
import type { Change } from '../../src/simulator/changes/change.ts'
import type { Fault } from '../../src/simulator/faults/faults.ts'
import type { SimulatorOptions } from '../../src/simulator/server.ts'
import { TINY } from '../support/trial.ts'
import type { Deed } from './deeds.ts'
import type { Life } from './life.ts'

/** Short lives that are written by hand. */

export const SECOND = 1000
export const MINUTE = 60 * SECOND
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR

export const WORKSPACE: SimulatorOptions = { ...TINY, messages: 20, meetings: 3, seed: 1 }

/** The shortest life that shows something: polled rarely, and wrong after a day of rest. */
export const life = (parts: Pick<Life, 'resources'> & Partial<Life>, ...deeds: readonly Deed[]): Life => ({
  seed: 1,
  workspace: WORKSPACE,
  pollSeconds: 21_600,
  quietDays: 1,
  restDays: 0,
  deeds,
  ...parts,
})

export const answers = (atMs: number, forMs: number, ...faults: readonly Fault[]): Deed => ({
  kind: 'answers',
  atMs,
  forMs,
  faults,
})

/** What the API answers for good. */
export const nature = (atMs: number, ...faults: readonly Fault[]): Deed => ({ kind: 'answers', atMs, faults })

/** For twenty minutes a route leaves out rows at random, and the whole list is read meanwhile. */
export const leftOut = (resource: ResourceName, route: string): readonly Deed[] => [
  answers(5 * HOUR, 20 * MINUTE, { kind: 'partial', route }),
  { kind: 'command', argv: ['resync', resource], atMs: 5 * HOUR + MINUTE },
  look(6 * HOUR),
]

/** @param backMs what it hides is revealed again after this time */
export const change = (atMs: number, changed: Change, backMs?: number): Deed => ({
  kind: 'change',
  atMs,
  change: changed,
  ...(backMs !== undefined && { backMs }),
})

export const backfill = (atMs: number): Deed => ({ kind: 'backfill', atMs, argv: [] })

/** All that is untrue is looked for at each deed. */
export const look = (atMs: number): Deed => ({ kind: 'command', atMs, argv: ['status'] })
