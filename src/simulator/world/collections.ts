import { DAY, formatInstant } from '../base/instants.ts'
import { createItems, type Items } from '../base/items.ts'
import { at, mix, mixBelow } from '../base/random.ts'
import { SALT, type Scene, spread } from '../base/scene.ts'
import { compare, published } from './crm/people.ts'

const NAMES = [
  'Best discovery calls',
  'Objection handling',
  'Onboarding examples',
  'Lost deals 2026',
  'デモの良い例',
  'Pricing talks',
  'Renewals at risk',
  'Japan market',
  'Security questions',
  'Coaching: new hires',
  'Customer quotes 💬',
  'Q2 wins',
] as const

export interface Collections {
  items: Items
  createdAt(index: number): number
  json(index: number): string
  /** Indices of the published collections, newest first, ties by id descending. */
  order(): number[]
  hasMeeting(collection: number, meeting: number): boolean
}

export function createCollections(scene: Scene): Collections {
  const { seed, sizes } = scene
  const items = createItems({
    seed,
    salt: SALT.collection,
    shape: 'hex24',
    count: sizes.collections,
    initial: index => (index % 7 === 6 ? 'hidden' : 'published'),
  })
  // Three collections in a row have the same instant.
  const createdAt = (index: number): number => {
    const firstOfThree = index - (index % 3)
    const micros = spread(scene, mixBelow(seed, SALT.collection + 1, firstOfThree, 900) / 1_000)
    return items.addedAt(index) ?? micros - (micros % DAY)
  }
  return {
    items,
    createdAt,
    json: index => {
      const revision = items.revision(index)
      return JSON.stringify({
        id: items.ids.of(index),
        name: `${at(NAMES, index)}${index >= NAMES.length ? ` ${index}` : ''}${revision > 0 ? ` (${revision})` : ''}`,
        description: index % 4 === 3 ? '' : 'Meetings worth listening to again.',
        visibility: index % 2 === 0 ? 'WORKSPACE' : 'TEAM',
        created_at: formatInstant(createdAt(index), index),
        updated_at: formatInstant(items.editedAt(index) ?? createdAt(index) + DAY, index + 3),
      })
    },
    order: () =>
      published(items)
        .map(index => ({ index, at: createdAt(index), id: items.ids.of(index) }))
        .sort((a, b) => compare(b.at, a.at) || compare(b.id, a.id))
        .map(row => row.index),
    // After an edit, one meeting in five has joined or left the collection since the start.
    hasMeeting: (collection, meeting) => {
      const moved =
        mix(seed, SALT.collection + 2 + items.revision(collection), meeting * 977 + collection) % 5 === 0
      const base = mix(seed, SALT.collection + 60, meeting * 977 + collection) % 8 === 0
      return items.revision(collection) > 0 && moved ? !base : base
    },
  }
}
