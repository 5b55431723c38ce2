import { createIds, type IdShape, type Ids } from './ids.ts'

/** published: visible everywhere; hidden: private, inactive or restricted, can be revealed; deleted: permanent. */
export type ItemState = 'published' | 'hidden' | 'deleted'

const STATES: readonly ItemState[] = ['published', 'hidden', 'deleted']

/** The items of one kind: their number, states and revisions. */
export interface Items {
  readonly ids: Ids
  count(): number
  isPublished(index: number): boolean
  state(index: number): ItemState
  setState(index: number, state: ItemState): void
  /** The number of edits of the item. */
  revision(index: number): number
  /** Microseconds of the last edit; undefined for an item without edits. */
  editedAt(index: number): number | undefined
  edit(index: number, micros: number): void
  /** Appends an item that was created at this instant, and returns its index. */
  add(micros: number): number
  /** Microseconds at which an appended item was created; undefined for an item that existed at the start. */
  addedAt(index: number): number | undefined
  /** The index of the item with this id, published or not; -1 when no item has it. */
  find(id: string): number
}

export interface ItemsOptions {
  seed: number
  salt: number
  shape: IdShape
  count: number
  /** The first state of an item. Default `published`. */
  initial?: (index: number) => ItemState
}

export function createItems({ seed, salt, shape, count, initial }: ItemsOptions): Items {
  const ids = createIds(seed, salt, shape)
  const edits = new Map<number, { times: number; at: number }>()
  const additions: number[] = []
  let states = new Uint8Array(count)
  let length = count
  if (initial) for (let i = 0; i < count; i++) states[i] = STATES.indexOf(initial(i))

  return {
    ids,
    count: () => length,
    isPublished: index => index >= 0 && index < length && states[index] === 0,
    state: index => STATES[states[index] ?? 2] ?? 'deleted',
    setState: (index, state) => {
      states[index] = STATES.indexOf(state)
    },
    revision: index => edits.get(index)?.times ?? 0,
    editedAt: index => edits.get(index)?.at,
    edit: (index, micros) => {
      edits.set(index, { times: (edits.get(index)?.times ?? 0) + 1, at: micros })
    },
    addedAt: index => (index < count ? undefined : additions[index - count]),
    add: micros => {
      additions.push(micros)
      if (length === states.length) {
        const larger = new Uint8Array(Math.max(64, length * 2))
        larger.set(states)
        states = larger
      }
      states[length] = 0
      return length++
    },
    find: id => {
      const index = ids.indexOf(id)
      return index >= 0 && index < length ? index : -1
    },
  }
}
