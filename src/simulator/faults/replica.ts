import { type Change, type ChangeResult, createChanges } from '../changes.ts'
import type { Scene } from '../world/scene.ts'
import type { World } from '../world/world.ts'

/** A second copy of the workspace, which receives each change later. */
export interface Replica {
  /** Applies a change to the workspace at once, and to the replica later. */
  apply(change: Change): ChangeResult
  /** The workspace as it was `delayMs` ago, but never in an earlier state than at the previous call. */
  laggingWorld(delayMs: number): World
}

export interface ReplicaParts {
  scene: Scene
  world: World
  /** Creates the workspace in its first state. */
  create(scene: Scene): World
}

export function createReplica({ scene, world, create }: ReplicaParts): Replica {
  const changes = createChanges(world)
  const pending: { change: Change; at: number }[] = []
  let now = scene.now()
  let replica: { world: World; apply(change: Change): ChangeResult } | undefined

  const createReplicaWorld = () => {
    // The result of a change depends on its time, so the replica's clock shows the time of the change meanwhile.
    const copy = create({ ...scene, now: () => now })
    return { world: copy, apply: createChanges(copy).apply }
  }

  return {
    apply(change) {
      const at = scene.now()
      const result = changes.apply(change)
      pending.push({ change, at })
      return result
    },
    laggingWorld(delayMs) {
      replica ??= createReplicaWorld()
      const until = scene.now() - delayMs * 1_000
      for (let next = pending[0]; next !== undefined && next.at <= until; next = pending[0]) {
        now = next.at
        replica.apply(next.change)
        pending.shift()
      }
      now = until
      return replica.world
    },
  }
}
