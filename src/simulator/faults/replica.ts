import { type Change, type ChangeResult, createChanges } from '../changes.ts'
import type { Scene } from '../world/scene.ts'
import type { World } from '../world/world.ts'

/** The same workspace a second time, to which changes come later than to the first. */
export interface Replica {
  /** Applies a change to the first workspace, and keeps it for this one. */
  apply(change: Change): ChangeResult
  /** The workspace as it was so long ago, or as it was at the last call where that is later. */
  behind(delayMs: number): World
}

export interface ReplicaParts {
  scene: Scene
  world: World
  /** Makes the workspace as it was at its start. */
  create(scene: Scene): World
}

export function createReplica({ scene, world, create }: ReplicaParts): Replica {
  const changes = createChanges(world)
  const kept: { change: Change; at: number }[] = []
  let now = scene.now()
  let second: { world: World; apply(change: Change): ChangeResult } | undefined

  const start = () => {
    // What a change makes depends on when it came.
    const copy = create({ ...scene, now: () => now })
    return { world: copy, apply: createChanges(copy).apply }
  }

  return {
    apply(change) {
      const at = scene.now()
      const result = changes.apply(change)
      kept.push({ change, at })
      return result
    },
    behind(delayMs) {
      second ??= start()
      const until = scene.now() - delayMs * 1_000
      for (let next = kept[0]; next !== undefined && next.at <= until; next = kept[0]) {
        now = next.at
        second.apply(next.change)
        kept.shift()
      }
      now = until
      return second.world
    },
  }
}
