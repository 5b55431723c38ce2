import { createIds, type IdShape, type Ids } from './ids.ts'

/** published: seen everywhere; hidden: private, inactive or restricted, can be revealed; deleted: gone for good. */
export type ItemState = 'published' | 'hidden' | 'deleted'

const STATES: readonly ItemState[] = ['published', 'hidden', 'deleted']

/** One kind of item: how many there are, which of them are published, and how often each was edited. */
export interface Shelf {
  readonly ids: Ids
  count(): number
  isPublished(index: number): boolean
  state(index: number): ItemState
  setState(index: number, state: ItemState): void
  /** How often the item was edited; 0 for the generated one. */
  revision(index: number): number
  /** Microseconds of the last edit; undefined when there was none. */
  editedAt(index: number): number | undefined
  edit(index: number, micros: number): void
  /** Appends one more item, made at the instant given, and gives its index. */
  add(micros: number): number
  /** Microseconds at which an appended item was made; undefined for those there from the start. */
  addedAt(index: number): number | undefined
  /** The index of an id, -1 when it is of no item of this shelf, published or not. */
  find(id: string): number
}

export interface ShelfOptions {
  seed: number
  salt: number
  shape: IdShape
  count: number
  /** The state in which an item is made; published when not given. */
  initial?: (index: number) => ItemState
}

export function createShelf({ seed, salt, shape, count, initial }: ShelfOptions): Shelf {
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
