import { coarsen } from '../../base/instants.ts'
import { mixBelow } from '../../base/random.ts'
import { SALT, type Scene, spread } from '../../base/scene.ts'
import { STAGES } from '../../content/objects.ts'
import type { Customers } from './customers.ts'

/** The moves of deals through stages and pipelines. */
export interface DealHistory {
  createdAt(deal: number): number
  /** The number of stage changes in the made-up history. */
  steps(deal: number): number
  /** The instant of change number `step`, counted from 0. */
  stepAt(deal: number, step: number): number
  stageOf(deal: number): Stage
}

export interface Stage {
  /** Index of the stage record. */
  stage: number
  pipeline: number
  isClosed: boolean
}

/** Stage records: those of the first pipeline, then those of the second. */
export const STAGE_ROWS: readonly (Stage & { name: string; position: number })[] = STAGES.flatMap(
  (names, pipeline) =>
    names.map((name, position) => ({
      name,
      position,
      pipeline,
      stage: (pipeline === 0 ? 0 : STAGES[0].length) + position,
      isClosed: position >= names.length - 2,
    })),
)

/** Paths through the stages: new business won, new business lost, renewed, and won with a later renewal. */
const PATHS: readonly (readonly number[])[] = [
  [0, 1, 2, 3, 4],
  [0, 1, 2, 5],
  [6, 7, 8, 9],
  [0, 1, 2, 3, 4, 6, 7, 8, 9],
]

export function createDealHistory(scene: Scene, { items: { deal: deals } }: Customers): DealHistory {
  const { seed } = scene
  const path = (deal: number): readonly number[] =>
    PATHS[mixBelow(seed, SALT.deal + 30, deal, PATHS.length)] ?? [0]
  const createdAt = (deal: number): number => {
    const part = mixBelow(seed, SALT.deal + 31, deal, 1_000_000) / 1_050_000
    return deals.addedAt(deal) ?? coarsen(spread(scene, part), deal)
  }
  const steps = (deal: number): number =>
    deals.addedAt(deal) === undefined ? mixBelow(seed, SALT.deal + 32, deal, path(deal).length) : 0
  return {
    createdAt,
    steps,
    stepAt: (deal, step) => {
      const jitter = mixBelow(seed, SALT.deal + 33 + step, deal, 1_000) / 1_000
      return coarsen(
        spread(scene, (step + 0.3 + jitter * 0.6) / (steps(deal) + 1), createdAt(deal)),
        deal + step,
      )
    },
    stageOf: deal => {
      const stages = path(deal)
      const row = STAGE_ROWS[stages[Math.min(stages.length - 1, steps(deal) + deals.revision(deal))] ?? 0]
      return row ?? { stage: 0, pipeline: 0, isClosed: false }
    },
  }
}
