import { DAY, formatDay, formatInstant } from '../../base/instants.ts'
import type { Items } from '../../base/items.ts'
import { at, createDraw, type Draw, mix } from '../../base/random.ts'
import { quote, quoteOrNull, SALT, type Scene, spread } from '../../base/scene.ts'
import {
  CLOSED_FORECAST,
  type CURRENCIES,
  DEAL_TOPICS,
  type FieldDefinition,
  type ObjectDefinition,
  OPEN_FORECASTS,
  OPTION_VALUES,
  PIPELINES,
  STAGE_PROBABILITIES,
} from '../../content/objects.ts'
import type { Customers } from './customers.ts'
import type { DealHistory } from './deals.ts'
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
    ...(scene.isRealistic && realisticValues(scene, parts)),
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
  const anyDeal: Value = (_, draw) => id('deal', sizes.deals === 0 ? -1 : draw.below(sizes.deals))
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
    'stage.name': index => quote(history.stages[index]?.name ?? ''),
    'stage.position': index => String(history.stages[index]?.position ?? 0),
    'stage.pipeline_id': index => id('pipeline', history.stages[index]?.pipeline ?? 0),
    'renewal.deal_id': anyDeal,
    'renewal_order.deal_id': anyDeal,
  }
}

/** Whether an edit of a record changes the value of this field. */
function isEdited({ isTidy }: Scene, { name }: FieldDefinition, position: number): boolean {
  return isTidy ? ['close_date', 'next_step', 'note', 'forecast_category'].includes(name) : position % 2 === 0
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
  const { deal: deals } = customers.items
  return {
    'deal.amount': (_, draw) => (draw.chance(0.05) ? 'null' : String(2_000 + draw.below(160) * 500)),
    'deal.next_step': (_, draw) => quote(draw.pick(NEXT_STEPS)),
    // Most open deals close in the coming months; a few are overdue.
    'deal.close_date': (index, draw) => {
      const steps = history.steps(index)
      if (history.isClosedByEdit(index)) return quote(formatDay(deals.editedAt(index) ?? scene.end))
      if (history.stageOf(index).isClosed && steps > 0)
        return quote(formatDay(history.stepAt(index, steps - 1)))
      if (scene.isRealistic && deals.revision(index) > 0 && draw.chance(0.25)) return 'null'
      const from = deals.editedAt(index) ?? Math.max(scene.end, history.createdAt(index))
      return quote(formatDay(from + (draw.chance(0.08) ? -draw.below(25) : 40 + draw.below(200)) * DAY))
    },
  }
}

/** The amount of a deal in yen is this many times that in another currency. */
const YEN = 150
/** What an edit makes of the first amount of a deal. */
const AMOUNT_CHANGES = [1, 1, 1.25, 1, 0.8, 1.5] as const

/** Each company pays in one currency, which follows from its legal form. */
function currencyOfCompany(name: string): (typeof CURRENCIES)[number] {
  if (/(K\.K\.|株式会社)$/.test(name)) return 'JPY'
  return /(GmbH|AG|S\.A\.)$/.test(name) ? 'EUR' : 'USD'
}

function realisticValues(scene: Scene, { customers, history }: RecordParts): Record<string, Value> {
  const { seed } = scene
  const { deal: deals } = customers.items
  const isOpen = (deal: number): boolean => !history.stageOf(deal).isClosed
  const currencyOf = (deal: number) => currencyOfCompany(customers.companyName(customers.companyOfDeal(deal)))
  return {
    'deal.currency': deal => quote(currencyOf(deal)),
    'deal.amount': (deal, draw) => {
      if (draw.chance(0.05)) return 'null'
      const first = (2_000 + draw.below(160) * 500) * (currencyOf(deal) === 'JPY' ? YEN : 1)
      const revision = deals.revision(deal)
      const factor = at(AMOUNT_CHANGES, mix(seed, SALT.deal + 60 + revision, deal))
      return String(Math.round(revision === 0 ? first : first * factor))
    },
    'deal.forecast_category': (deal, draw) =>
      quote(isOpen(deal) ? draw.pick(OPEN_FORECASTS) : CLOSED_FORECAST),
    'stage.probability': index => String(STAGE_PROBABILITIES[history.stages[index]?.name ?? ''] ?? 100),
    'contact.secondary_email': contact => quoteOrNull(customers.secondEmail(contact)),
    'contact.has_opted_out': contact => String(contact % 12 === 5),
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
  if (field.options) return quote(draw.pick(field.options))
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
