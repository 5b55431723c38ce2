import { DAY, formatDay, formatInstant } from '../../base/instants.ts'
import type { Items } from '../../base/items.ts'
import { at, createDraw, type Draw } from '../../base/random.ts'
import { quote, SALT, type Scene, spread } from '../../base/scene.ts'
import {
  DEAL_TOPICS,
  type FieldDefinition,
  type ObjectDefinition,
  OPTION_VALUES,
  PIPELINES,
} from '../../content/objects.ts'
import type { Customers } from './customers.ts'
import { type DealHistory, STAGE_ROWS } from './deals.ts'
import type { People } from './people.ts'

export interface RecordParts {
  people: People
  customers: Customers
  history: DealHistory
}

/** A value as JSON text; undefined when the record does not have the field. */
type Value = (index: number, draw: Draw, field: FieldDefinition) => string | undefined

/** Returns a function that gives a record's field values: the members of a JSON object, without its braces. */
export function createFieldValues(
  scene: Scene,
  parts: RecordParts,
  itemsOf: (name: string) => Items | undefined,
): (object: ObjectDefinition, index: number, revision: number) => string {
  const values = {
    ...specialValues(scene, parts, itemsOf),
    ...(scene.isTidy && tidyValues(scene, parts)),
  }
  return (object, index, revision) => {
    const fields: string[] = []
    object.fields.forEach((field, position) => {
      const edits = isEdited(scene, field, position) ? revision : 0
      const draw = createDraw(scene.seed, saltOf(object, field) + edits, index)
      const special = values[`${object.name}.${field.key ?? field.name}`]
      const value = special ? special(index, draw, field) : plainValue(scene, field, draw, revision)
      if (value !== undefined) fields.push(`${quote(field.name)}:${value}`)
    })
    return fields.join(',')
  }
}

/**
 * Values with a meaning; all others are drawn by the field's kind. Owners and deals are drawn from the first state of
 * the workspace, so that a new member or deal does not alter existing records.
 */
function specialValues(
  { sizes }: Scene,
  { people, customers, history }: RecordParts,
  itemsOf: (name: string) => Items | undefined,
): Record<string, Value> {
  const id = (object: string, index: number): string =>
    index < 0 ? 'null' : quote(itemsOf(object)?.ids.of(index) ?? '')
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

/** The salt that keeps the draws of the fields apart. It stays the same when a field is renamed or added. */
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
