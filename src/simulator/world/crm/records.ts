import { coarsen, formatInstant } from '../../base/instants.ts'
import { createItems, type Items } from '../../base/items.ts'
import { mix } from '../../base/random.ts'
import { quote, quoteOrNull, SALT, type Scene, spread } from '../../base/scene.ts'
import {
  type FieldDefinition,
  type ObjectDefinition,
  OPTION_VALUES,
  objectDefinitions,
  PIPELINES,
} from '../../content/objects.ts'
import type { People } from './people.ts'
import { createFieldValues, type RecordParts } from './values.ts'

export interface Records {
  /** Every object that the workspace has, listed or not. */
  objects(): readonly ObjectDefinition[]
  object(name: string): ObjectDefinition | undefined
  /** undefined for an unknown object, and for one whose records cannot be read. */
  itemsOf(name: string): Items | undefined
  objectJson(object: ObjectDefinition): string
  recordJson(object: ObjectDefinition, index: number): string
  /** Appends a record of the object; a deal, company or contact gets its links too. */
  add(name: string, micros: number): number
  /** Removes an object from the workspace: the list no longer names it, everything else answers 404. */
  retire(name: string): void
}

const RELATED = ['company', 'contact', 'deal'] as const

export function createRecords(scene: Scene, parts: RecordParts): Records {
  const { seed } = scene
  const { people, customers, history } = parts
  let definitions = objectDefinitions(scene)
  const itemsByObject = new Map<string, Items>()
  definitions.forEach((object, position) => {
    if (object.isReadable) itemsByObject.set(object.name, recordItems(scene, parts, object, position))
  })
  const itemsOf = (name: string): Items | undefined => itemsByObject.get(name)
  const fieldValues = createFieldValues(scene, parts, itemsOf)

  const createdAt = (name: string, index: number): number => {
    if (name === 'deal') return history.createdAt(index)
    return (
      itemsOf(name)?.addedAt(index) ??
      coarsen(spread(scene, (mix(seed, SALT.record, index) % 9_000) / 10_000), index)
    )
  }
  const updatedAt = (name: string, index: number): number => {
    const edited = itemsOf(name)?.editedAt(index)
    if (edited !== undefined) return edited
    const steps = name === 'deal' ? history.steps(index) : 0
    return steps > 0 ? history.stepAt(index, steps - 1) : createdAt(name, index)
  }

  return {
    objects: () => definitions,
    object: name => definitions.find(each => each.name === name),
    itemsOf,
    objectJson,
    recordJson: (object, index) => {
      const { name } = object
      const revision = itemsOf(name)?.revision(index) ?? 0
      const id = itemsOf(name)?.ids.of(index) ?? ''
      const created = index % 31 === 30 ? null : formatInstant(createdAt(name, index), index)
      const extra = mix(seed, SALT.record + 1, index) % 50 === 0 ? ',"source_system":"import"' : ''
      return (
        `{"id":"${id}","object":${quote(name)},"visibility":"workspace","fields":{${fieldValues(object, index, revision)}}` +
        `,"created_at":${quoteOrNull(created)},"updated_at":"${formatInstant(updatedAt(name, index), index >>> 3)}"` +
        `,"created_by":${authorJson(scene, people, mix(seed, SALT.record + 2, index))}` +
        `,"updated_by":${authorJson(scene, people, mix(seed, SALT.record + 3, index + revision))}${extra}}`
      )
    },
    add: (name, micros) => {
      const related = RELATED.find(each => each === name)
      if (related) return customers.add(related, micros)
      const target = itemsOf(name)
      if (!target) throw new RangeError(`object ${quote(name)} has no records to add to`)
      return target.add(micros)
    },
    retire: name => {
      definitions = definitions.filter(each => each.name !== name)
      itemsByObject.delete(name)
    },
  }
}

function recordItems(
  { seed, sizes }: Scene,
  { customers, history }: RecordParts,
  object: ObjectDefinition,
  position: number,
): Items {
  const related = RELATED.find(name => name === object.name)
  if (related) return customers.items[related]
  const counts: Record<string, number> = { pipeline: PIPELINES.length, stage: history.stages.length }
  const salt = SALT.object + position * 100
  return createItems({
    seed,
    salt,
    shape: 'uuid',
    count: counts[object.name] ?? sizes.customRecords,
    initial: index => (object.isCustom && mix(seed, salt + 50, index) % 100 < 4 ? 'hidden' : 'published'),
  })
}

function authorJson({ sizes }: Scene, people: People, draw: number): string {
  if (draw % 10 === 0) return 'null'
  return `{"kind":"member","name":${quote(people.originalName(draw % sizes.members))}}`
}

function objectJson(object: ObjectDefinition): string {
  return JSON.stringify({
    name: object.name,
    name_plural: object.plural,
    label: object.label,
    label_plural: object.labelPlural,
    is_custom: object.isCustom,
    is_active: object.isActive,
    fields: object.fields.map(fieldShape),
  })
}

function fieldShape(field: FieldDefinition): Record<string, unknown> {
  const hasOptions = field.kind === 'options' || field.kind === 'list'
  return {
    name: field.name,
    label: field.label,
    type: field.type,
    is_nullable: field.isNullable ?? false,
    is_unique: field.isUnique ?? false,
    is_custom: field.isCustom ?? false,
    is_active: field.isActive ?? true,
    options: hasOptions ? (field.options ?? OPTION_VALUES).map((label, order) => ({ label, order })) : null,
    ...(field.target && {
      relation: {
        type: 'MANY_TO_ONE',
        target_object: field.target.object,
        ...(field.target.resource !== undefined && { target_resource: field.target.resource }),
      },
    }),
  }
}
