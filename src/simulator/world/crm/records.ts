import {
  DEAL_TOPICS,
  type FieldDefinition,
  type ObjectDefinition,
  OPTION_VALUES,
  objectDefinitions,
  PIPELINES,
} from '../../content/objects.ts'
import { coarsen, DAY, formatDay, formatInstant } from '../../instants.ts'
import { createItems, type Items } from '../../items.ts'
import { at, createDraw, type Draw, mix } from '../../random.ts'
import type { People } from '../people.ts'
import { quote, SALT, type Scene, spread } from '../scene.ts'
import type { Customers } from './customers.ts'
import { type DealHistory, STAGE_ROWS } from './deals.ts'

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

interface RecordParts {
  people: People
  customers: Customers
  history: DealHistory
}

type Value = (index: number, draw: Draw, field: FieldDefinition) => string | undefined

export function createRecords(scene: Scene, parts: RecordParts): Records {
  const { seed, sizes } = scene
  let definitions = objectDefinitions(scene.isTidy)
  const itemsByObject = new Map<string, Items>()
  definitions.forEach((object, position) => {
    if (!object.isReadable) return
    itemsByObject.set(object.name, createItemsOf(object, position))
  })

  function createItemsOf(object: ObjectDefinition, position: number): Items {
    const related = RELATED.find(name => name === object.name)
    if (related) return parts.customers.items[related]
    const counts: Record<string, number> = { pipeline: PIPELINES.length, stage: STAGE_ROWS.length }
    const salt = SALT.object + position * 100
    return createItems({
      seed,
      salt,
      shape: 'uuid',
      count: counts[object.name] ?? sizes.customRecords,
      initial: index => (object.isCustom && mix(seed, salt + 50, index) % 100 < 4 ? 'hidden' : 'published'),
    })
  }

  const values = {
    ...specialValues(scene, parts, itemsByObject),
    ...(scene.isTidy && tidyValues(scene, parts)),
  }
  const itemsOf = (name: string): Items | undefined => itemsByObject.get(name)
  const object = (name: string): ObjectDefinition | undefined => definitions.find(each => each.name === name)

  const createdAt = (name: string, index: number): number => {
    if (name === 'deal') return parts.history.createdAt(index)
    return (
      itemsOf(name)?.addedAt(index) ??
      coarsen(spread(scene, (mix(seed, SALT.record, index) % 9_000) / 10_000), index)
    )
  }
  const updatedAt = (name: string, index: number): number => {
    const edited = itemsOf(name)?.editedAt(index)
    if (edited !== undefined) return edited
    const steps = name === 'deal' ? parts.history.steps(index) : 0
    return steps > 0 ? parts.history.stepAt(index, steps - 1) : createdAt(name, index)
  }
  const author = (index: number, salt: number): string => {
    const draw = mix(seed, salt, index)
    return draw % 10 === 0
      ? 'null'
      : `{"kind":"member","name":${quote(parts.people.originalName(draw % sizes.members))}}`
  }

  return {
    objects: () => definitions,
    object,
    itemsOf,
    objectJson,
    recordJson: (definition, index) => {
      const { name } = definition
      const revision = itemsOf(name)?.revision(index) ?? 0
      const fields: string[] = []
      definition.fields.forEach((field, position) => {
        const edits = isEdited(scene, field, position) ? revision : 0
        const draw = createDraw(seed, saltOf(definition, field) + edits, index)
        const special = values[`${name}.${field.key ?? field.name}`]
        const value = special ? special(index, draw, field) : plainValue(scene, field, draw, revision)
        if (value !== undefined) fields.push(`${quote(field.name)}:${value}`)
      })
      const created = createdAt(name, index)
      const id = itemsOf(name)?.ids.of(index) ?? ''
      const extra = mix(seed, SALT.record + 1, index) % 50 === 0 ? ',"source_system":"import"' : ''
      return (
        `{"id":"${id}","object":${quote(name)},"visibility":"workspace","fields":{${fields.join(',')}}` +
        `,"created_at":${index % 31 === 30 ? 'null' : `"${formatInstant(created, index)}"`}` +
        `,"updated_at":"${formatInstant(updatedAt(name, index), index >>> 3)}"` +
        `,"created_by":${author(index, SALT.record + 2)},"updated_by":${author(index + revision, SALT.record + 3)}${extra}}`
      )
    },
    add: (name, micros) => {
      const related = RELATED.find(each => each === name)
      if (related) return parts.customers.add(related, micros)
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

/**
 * Values with a meaning; all others are drawn by the field's kind. Owners and deals are drawn from the first state of
 * the workspace, so that a new member or deal does not alter existing records.
 */
function specialValues(
  { sizes }: Scene,
  { people, customers, history }: RecordParts,
  itemsByObject: Map<string, Items>,
): Record<string, Value> {
  const id = (object: string, index: number): string =>
    index < 0 ? 'null' : quote(itemsByObject.get(object)?.ids.of(index) ?? '')
  const owner: Value = (_, draw) =>
    draw.chance(0.1) ? 'null' : quote(people.members.ids.of(draw.below(sizes.members)))
  return {
    'deal.name': (index, draw) =>
      quote(`${customers.companyName(customers.companyOfDeal(index))} – ${draw.pick(DEAL_TOPICS)}`),
    'deal.pipeline_id': index => id('pipeline', history.stageOf(index).pipeline),
    'deal.stage_id': index => id('stage', history.stageOf(index).stage),
    'deal.company_id': index => id('company', customers.companyOfDeal(index)),
    'deal.is_closed': index => String(history.stageOf(index).isClosed),
    'deal.owner_id': owner,
    'company.owner_id': owner,
    'company.name': index => quote(customers.companyName(index)),
    'company.domain': index => quote(customers.companyDomain(index)),
    'contact.name': index => quote(customers.contactName(index)),
    'contact.email': index => quote(customers.contactEmail(index)),
    'contact.company_id': index => id('company', customers.companyOfContact(index)),
    'pipeline.name': index => quote(at(PIPELINES, index)),
    'pipeline.position': index => String(index),
    'stage.name': index => quote(STAGE_ROWS[index]?.name ?? ''),
    'stage.position': index => String(STAGE_ROWS[index]?.position ?? 0),
    'stage.pipeline_id': index => id('pipeline', STAGE_ROWS[index]?.pipeline ?? 0),
    'renewal.deal_id': (_, draw) => id('deal', sizes.deals === 0 ? -1 : draw.below(sizes.deals)),
  }
}

/** Whether an edit of a record changes the value of this field. */
function isEdited({ isTidy }: Scene, { name }: FieldDefinition, position: number): boolean {
  return isTidy ? ['close_date', 'next_step', 'note'].includes(name) : position % 2 === 0
}

const NEXT_STEPS = [
  'Send the revised quote',
  'Call procurement on Thursday',
  'Workshop with IT',
  'Waiting for the order form',
  '見積書の確認待ち',
] as const

/** Values for a workspace in which people keep their CRM in order. */
function tidyValues(scene: Scene, { customers, history }: RecordParts): Record<string, Value> {
  return {
    'deal.amount': (_, draw) => (draw.chance(0.05) ? 'null' : String(2_000 + draw.below(160) * 500)),
    'deal.next_step': (_, draw) => quote(draw.pick(NEXT_STEPS)),
    // Most open deals close in the coming months; a few are overdue.
    'deal.close_date': (index, draw) => {
      const steps = history.steps(index)
      if (history.stageOf(index).isClosed && steps > 0)
        return quote(formatDay(history.stepAt(index, steps - 1)))
      const from = customers.items.deal.editedAt(index) ?? Math.max(scene.end, history.createdAt(index))
      return quote(formatDay(from + (draw.chance(0.08) ? -draw.below(25) : 40 + draw.below(200)) * DAY))
    },
  }
}

const NOTES = [
  'Waiting for the order form',
  'Send the revised quote',
  'Call procurement on Thursday',
  '見積書の確認待ち',
  'None',
  'Workshop with IT 👩‍💻',
  'Said "maybe in Q3"',
  "Director's approval pending",
  'C:\\exports\\deal.csv',
  'first line\nsecond line',
] as const

function plainValue(scene: Scene, field: FieldDefinition, draw: Draw, revision: number): string | undefined {
  if (field.isCustom && draw.chance(0.05)) return undefined
  if (field.isNullable && draw.chance(0.12)) return 'null'
  return PLAIN[field.kind](draw, scene, revision)
}

function digits(draw: Draw, count: number): string {
  let text = ''
  while (text.length < count) text += String(draw.below(1_000_000_000)).padStart(9, '0')
  return text.slice(0, count)
}

/** Values as JSON text, so that numbers keep every digit. */
const PLAIN: Record<FieldDefinition['kind'], (draw: Draw, scene: Scene, revision: number) => string> = {
  text: (draw, _, revision) => quote(`${draw.pick(NOTES)}${revision > 0 ? ` (${revision})` : ''}`),
  integer: draw => String(draw.below(5_000)),
  decimal: (draw, scene) =>
    `${1 + draw.below(900_000)}.${digits(draw, draw.chance(0.2) && !scene.isTidy ? 22 : 2)}`,
  huge: draw => (draw.chance(0.03) ? '1.25e+21' : `${1 + draw.below(9)}${digits(draw, 16 + draw.below(6))}`),
  date: (draw, scene) => quote(formatDay(spread(scene, draw.below(1_000) / 900))),
  datetime: (draw, scene) => quote(formatInstant(spread(scene, draw.below(1_000) / 1_000), draw.below(8))),
  boolean: draw => String(draw.chance(0.5)),
  options: draw => quote(draw.pick(OPTION_VALUES)),
  list: draw => JSON.stringify(OPTION_VALUES.filter(() => draw.chance(0.4))),
  relation: () => 'null',
  misfit: draw => draw.pick(MISFITS),
}

/** Values of all kinds. Most of them do not fit the type of the field. */
const MISFITS = [
  'true',
  'false',
  '1',
  '-0.0',
  '12',
  '1250000.000000000000000000001',
  '-98765432109876543210',
  '1e400',
  '"12.50"',
  '"00012"',
  '"maybe"',
  '""',
  '"2026-02-30"',
  '"2026-02-03T04:05:06.7891+09:00"',
  '["a","b"]',
  '{"amount":12345678901234567890,"currency":"JPY"}',
] as const

const salts = new WeakMap<FieldDefinition, number>()

/** Keeps the draws of the fields apart; it does not change when a field is renamed or another one is added. */
function saltOf(object: ObjectDefinition, field: FieldDefinition): number {
  const known = salts.get(field)
  if (known !== undefined) return known
  let salt = 0
  for (const letter of `${object.name}.${field.key ?? field.name}`) {
    salt = (Math.imul(salt, 31) + (letter.codePointAt(0) ?? 0)) >>> 0
  }
  salt = SALT.record + 100 + (salt % 1_000_000_007)
  salts.set(field, salt)
  return salt
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
    options: hasOptions ? OPTION_VALUES.map((label, order) => ({ label, order })) : null,
    ...(field.target && {
      relation: {
        type: 'MANY_TO_ONE',
        target_object: field.target.object,
        ...(field.target.resource !== undefined && { target_resource: field.target.resource }),
      },
    }),
  }
}
