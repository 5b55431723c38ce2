import { coarsen } from '../../base/instants.ts'
import { mixBelow } from '../../base/random.ts'
import { SALT, type Scene, spread } from '../../base/scene.ts'
import { FORMER_STAGE, REALISTIC_STAGES, STAGES } from '../../content/objects.ts'
import type { Customers } from './customers.ts'

/** The moves of deals through stages and pipelines. */
export interface DealHistory {
  stages: readonly StageRow[]
  createdAt(deal: number): number
  /** The number of stage changes in the made-up history. */
  steps(deal: number): number
  /** The instant of change number `step`, counted from 0. */
  stepAt(deal: number, step: number): number
  stageOf(deal: number): Stage
  /** Whether an edit has closed the deal. */
  isClosedByEdit(deal: number): boolean
}

export interface Stage {
  /** Index of the stage record. */
  stage: number
  pipeline: number
  isClosed: boolean
}

export interface StageRow extends Stage {
  name: string
  position: number
}

/** Stage records: those of the first pipeline, those of the second, and in a realistic workspace the former one. */
function stageRows({ isRealistic }: Scene): StageRow[] {
  const rows = (isRealistic ? REALISTIC_STAGES : STAGES).flatMap((names, pipeline) =>
    names.map((name, position) => ({
      name,
      position,
      pipeline,
      stage: (pipeline === 0 ? 0 : STAGES[0].length) + position,
      isClosed: position >= names.length - 2,
    })),
  )
  const former = { name: FORMER_STAGE, position: STAGES[0].length, pipeline: 0, stage: rows.length }
  return isRealistic ? [...rows, { ...former, isClosed: true }] : rows
}

/** The won stage of the first pipeline: its index, and the number of steps to it. */
const WON = 4

/** Paths through the stages: new business won, new business lost, renewed, and won with a later renewal. */
const PATHS: readonly (readonly number[])[] = [
  [0, 1, 2, 3, 4],
  [0, 1, 2, 5],
  [6, 7, 8, 9],
  [0, 1, 2, 3, 4, 6, 7, 8, 9],
]

export function createDealHistory(scene: Scene, { items: { deal: deals } }: Customers): DealHistory {
  const { seed, isRealistic } = scene
  const stages = stageRows(scene)
  const path = (deal: number): readonly number[] =>
    PATHS[mixBelow(seed, SALT.deal + 30, deal, PATHS.length)] ?? [0]
  const createdAt = (deal: number): number => {
    const part = mixBelow(seed, SALT.deal + 31, deal, 1_000_000) / 1_050_000
    return deals.addedAt(deal) ?? coarsen(spread(scene, part), deal)
  }
  const steps = (deal: number): number => {
    if (deals.addedAt(deal) !== undefined) return 0
    const { length } = path(deal)
    // In a realistic workspace half of the deals on the first path were won before the demo.
    const more = isRealistic && length === WON + 1 ? 3 : 0
    return Math.min(length - 1, mixBelow(seed, SALT.deal + 32, deal, length + more))
  }
  const stageOf = (deal: number): Stage => {
    const way = path(deal)
    const stage = way[Math.min(way.length - 1, steps(deal) + deals.revision(deal))] ?? 0
    // The older deals of those that were won before the demo have the stage of that time.
    const isFormer =
      isRealistic && stage === WON && steps(deal) === WON && createdAt(deal) < spread(scene, 0.5)
    const row = isFormer ? stages.at(-1) : stages[stage]
    return row ?? { stage: 0, pipeline: 0, isClosed: false }
  }
  return {
    stages,
    createdAt,
    steps,
    stepAt: (deal, step) => {
      const jitter = mixBelow(seed, SALT.deal + 33 + step, deal, 1_000) / 1_000
      return coarsen(
        spread(scene, (step + 0.3 + jitter * 0.6) / (steps(deal) + 1), createdAt(deal)),
        deal + step,
      )
    },
    stageOf,
    isClosedByEdit: deal => stageOf(deal).isClosed && !stages[path(deal)[steps(deal)] ?? 0]?.isClosed,
  }
}
