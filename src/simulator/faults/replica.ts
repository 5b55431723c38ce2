import type { Scene } from '../base/scene.ts'
import type { Change, ChangeResult } from '../changes/change.ts'
import { createChanges } from '../changes/changes.ts'
import type { World } from '../world/world.ts'

/** The workspace, and a second copy of it that receives each change later. */
export interface Replica {
  /** The workspace, with every change. */
  world: World
  /** Applies a change to the workspace at once, and to the replica later. */
  apply(change: Change): ChangeResult
  /** The workspace as it was `delayMs` ago, but never in an earlier state than at the previous call. */
  laggingWorld(delayMs: number): World
}

export interface ReplicaParts {
  scene: Scene
  /** Creates the workspace in its first state. */
  create(scene: Scene): World
}

export function createReplica({ scene, create }: ReplicaParts): Replica {
  const workspace = createWorkspaceCopy(create, scene)
  const pending: { change: Change; at: number }[] = []
  let now = scene.now()
  let replica: WorkspaceCopy | undefined

  return {
    world: workspace.world,
    apply(change) {
      const at = scene.now()
      const result = workspace.apply(change, at)
      pending.push({ change, at })
      return result
    },
    laggingWorld(delayMs) {
      replica ??= createWorkspaceCopy(create, { ...scene, now: () => now })
      const until = scene.now() - delayMs * 1_000
      for (let next = pending[0]; next !== undefined && next.at <= until; next = pending[0]) {
        replica.apply(next.change, next.at)
        pending.shift()
      }
      now = Math.max(now, until)
      return replica.world
    },
  }
}

interface WorkspaceCopy {
  world: World
  apply(change: Change, at: number): ChangeResult
}

/**
 * The result of a change depends on every time that the clock shows during the change. So the clock stands still at the
 * time of a change while the change is applied, and the same change has the same result in each copy.
 */
function createWorkspaceCopy(create: (scene: Scene) => World, scene: Scene): WorkspaceCopy {
  let changeAt: number | undefined
  const world = create({ ...scene, now: () => changeAt ?? scene.now() })
  const changes = createChanges(world)
  return {
    world,
    apply(change, at) {
      changeAt = at
      try {
        return changes.apply(change)
      } finally {
        changeAt = undefined
      }
    },
  }
}
