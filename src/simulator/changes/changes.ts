import type { World } from '../world/world.ts'
import type { Change, ChangeOf, ChangeResult } from './change.ts'
import { createDraws } from './draws.ts'
import { changeState, complete, edit } from './existing-items.ts'
import { addField, changeField, retireObject } from './objects.ts'
import { publish } from './publish.ts'
import type { ChangeContext } from './selection.ts'

export interface Changes {
  /**
   * Throws a RangeError that names the unknown kind, id, object, field or resource, or the deleted item to hide or
   * reveal.
   */
  apply(change: Change): ChangeResult
}

type Kind = Change['kind']

/** Each returns the ids of the changed items, or the name of the object. */
const PERFORM: { [K in Kind]: (context: ChangeContext, change: ChangeOf<K>) => string[] } = {
  publish,
  publishLate: publish,
  edit,
  hide: changeState,
  delete: changeState,
  reveal: changeState,
  completeOverview: complete,
  completeTranscript: complete,
  addField,
  renameField: changeField,
  retypeField: changeField,
  retireObject,
  editSettings: ({ world }) => {
    world.editSettings()
    return []
  },
}

function perform<K extends Kind>(context: ChangeContext, kind: K, change: ChangeOf<K>): string[] {
  // Changes that arrive over HTTP can have any kind.
  if (!Object.hasOwn(PERFORM, kind)) throw new RangeError(`no change has the kind ${kind}`)
  return PERFORM[kind](context, change)
}

export function createChanges(world: World): Changes {
  const draws = createDraws(world.scene)
  return {
    apply: change => {
      const ids = perform({ world, draws }, change.kind, change)
      // Only a successful change advances the draws, so that a refused change does not alter later ones.
      draws.advance()
      return { ids }
    },
  }
}
