import type { Scene } from '../base/scene.ts'

/** The CRM objects of the workspace with their fields: standard, custom, and some whose names are hostile to SQL. */

export type FieldKind =
  | 'text'
  | 'integer'
  | 'decimal'
  | 'huge'
  | 'date'
  | 'datetime'
  | 'boolean'
  | 'options'
  | 'list'
  | 'relation'
  | 'misfit'

export interface FieldDefinition {
  /** Seeds the draws of its values. It does not change when the field is renamed. */
  key?: string
  name: string
  label: string
  type: string
  kind: FieldKind
  isNullable?: boolean
  isUnique?: boolean
  isCustom?: boolean
  isActive?: boolean
  /** The name or the values are hostile. */
  isHostile?: boolean
  options?: readonly string[]
  target?: { object: string; resource?: string }
}

export interface ObjectDefinition {
  name: string
  plural: string
  label: string
  labelPlural: string
  isCustom: boolean
  isActive: boolean
  /** The name is hostile. */
  isHostile?: boolean
  /** The object list names it. */
  isListed: boolean
  /** When false, the object's record list answers 404, although the object list names the object. */
  isReadable: boolean
  fields: FieldDefinition[]
}

const text = (name: string, label: string, more: Partial<FieldDefinition> = {}): FieldDefinition => ({
  name,
  label,
  type: 'TEXT',
  kind: 'text',
  isNullable: true,
  ...more,
})
const relation = (name: string, label: string, object: string, resource?: string): FieldDefinition => ({
  name,
  label,
  type: 'RELATION',
  kind: 'relation',
  isNullable: true,
  target: resource === undefined ? { object } : { object, resource },
})
const custom = (name: string, kind: FieldKind, type: string): FieldDefinition => ({
  name,
  label: name.slice(0, 40),
  type,
  kind,
  isCustom: true,
  isNullable: true,
})

const LONG_FIELD_NAME = `long_${'x'.repeat(295)}`

/** Returns a new copy: changes alter the definitions while the simulator runs. */
export function objectDefinitions({
  isTidy,
  isRealistic,
}: Pick<Scene, 'isTidy' | 'isRealistic'>): ObjectDefinition[] {
  const all = [...standardObjects(), ...customObjects()]
  const chosen = isTidy ? withoutHostile(all) : all
  return isRealistic ? withRealistic(chosen) : chosen
}

function withoutHostile(all: readonly ObjectDefinition[]): ObjectDefinition[] {
  return all
    .filter(object => !object.isHostile)
    .map(object => ({ ...object, fields: object.fields.filter(field => !field.isHostile) }))
}

/** Adds fields to deals and contacts, and an object that looks like a deal. */
function withRealistic(all: readonly ObjectDefinition[]): ObjectDefinition[] {
  const select = (name: string, label: string, options: readonly string[]): FieldDefinition => ({
    ...{ name, label, type: 'SELECT', kind: 'options', options },
  })
  const added: Record<string, FieldDefinition[]> = {
    deal: [
      select('currency', 'Currency', CURRENCIES),
      select('forecast_category', 'Forecast category', [...OPEN_FORECASTS, CLOSED_FORECAST]),
    ],
    contact: [
      text('secondary_email', 'Second e-mail'),
      { name: 'has_opted_out', label: 'Opted out of e-mails', type: 'BOOLEAN', kind: 'boolean' },
    ],
  }
  const order = customObject('renewal_order', 'Renewal order', [
    custom('amount', 'decimal', 'NUMBER'),
    select('currency', 'Currency', CURRENCIES),
    select('stage', 'Stage', ['Draft', 'Sent', 'Signed']),
    relation('deal_id', 'Deal', 'deal'),
  ])
  return [
    ...all.map(object => ({ ...object, fields: [...object.fields, ...(added[object.name] ?? [])] })),
    order,
  ]
}

const hostile = (field: FieldDefinition): FieldDefinition => ({ ...field, isHostile: true })

function standard(
  name: string,
  plural: string,
  label: string,
  fields: FieldDefinition[],
  listed = true,
): ObjectDefinition {
  return {
    name,
    plural,
    label,
    labelPlural: `${label}s`,
    isCustom: false,
    isActive: true,
    isListed: listed,
    isReadable: true,
    fields,
  }
}

function standardObjects(): ObjectDefinition[] {
  return [
    standard('deal', 'deals', 'Deal', [
      text('name', 'Name', { isNullable: false }),
      { name: 'amount', label: 'Amount', type: 'NUMBER', kind: 'decimal', isNullable: true },
      { name: 'close_date', label: 'Close date', type: 'DATE', kind: 'date', isNullable: true },
      relation('pipeline_id', 'Pipeline', 'pipeline'),
      relation('stage_id', 'Stage', 'stage'),
      relation('company_id', 'Company', 'company'),
      relation('owner_id', 'Owner', 'member', 'members'),
      { name: 'is_closed', label: 'Closed', type: 'BOOLEAN', kind: 'boolean' },
      text('next_step', 'Next step'),
      hostile(custom('external_ref', 'huge', 'NUMBER')),
      hostile(custom('select', 'options', 'SELECT')),
      hostile(custom('Group By', 'text', 'TEXT')),
      hostile(custom('it\'s "quoted"', 'text', 'TEXT')),
      custom('契約 種別', 'options', 'SELECT'),
      hostile(custom('Amount', 'integer', 'NUMBER')),
      hostile(custom(LONG_FIELD_NAME, 'text', 'TEXT')),
      custom('tags', 'list', 'MULTI_SELECT'),
      hostile(custom('a.b[0]->$', 'datetime', 'DATETIME')),
      hostile({ ...custom('old_score', 'decimal', 'NUMBER'), isActive: false }),
    ]),
    standard('pipeline', 'pipelines', 'Pipeline', [
      text('name', 'Name', { isNullable: false }),
      { name: 'position', label: 'Position', type: 'NUMBER', kind: 'integer' },
    ]),
    standard('stage', 'stages', 'Stage', [
      text('name', 'Name', { isNullable: false }),
      { name: 'position', label: 'Position', type: 'NUMBER', kind: 'integer' },
      relation('pipeline_id', 'Pipeline', 'pipeline'),
      { name: 'probability', label: 'Probability', type: 'NUMBER', kind: 'decimal' },
    ]),
    standard(
      'company',
      'companies',
      'Company',
      [
        text('name', 'Name', { isNullable: false }),
        text('domain', 'Domain', { isUnique: true }),
        { name: 'employees', label: 'Employees', type: 'NUMBER', kind: 'integer', isNullable: true },
        hostile({ name: 'revenue', label: 'Revenue', type: 'NUMBER', kind: 'huge', isNullable: true }),
        relation('owner_id', 'Owner', 'member', 'members'),
      ],
      false,
    ),
    standard(
      'contact',
      'contacts',
      'Contact',
      [
        text('name', 'Name', { isNullable: false }),
        text('email', 'E-mail', { isUnique: true }),
        text('phone', 'Phone'),
        relation('company_id', 'Company', 'company'),
        custom('opt-in?', 'boolean', 'BOOLEAN'),
      ],
      false,
    ),
  ]
}

function customObject(
  name: string,
  label: string,
  fields: FieldDefinition[],
  more: Partial<ObjectDefinition> = {},
): ObjectDefinition {
  return {
    name,
    plural: `${name}s`,
    label,
    labelPlural: `${label}s`,
    isCustom: true,
    isActive: true,
    isListed: true,
    isReadable: true,
    fields: [text('name', 'Name', { isNullable: false }), ...fields],
    ...more,
  }
}

const HOSTILE = { isHostile: true } as const

function customObjects(): ObjectDefinition[] {
  return [
    customObject('renewal', 'Renewal', [
      { ...custom('value', 'decimal', 'CURRENCY') },
      relation('deal_id', 'Deal', 'deal'),
      custom('due', 'date', 'DATE'),
      hostile(custom('id', 'text', 'TEXT')),
      hostile(custom('_deleted_at', 'datetime', 'DATETIME')),
      hostile({ ...custom('Value', 'huge', 'CURRENCY'), label: 'value' }),
    ]),
    customObject(
      'order',
      'Order',
      [
        custom('select', 'options', 'SELECT'),
        custom('SELECT', 'integer', 'NUMBER'),
        custom('signed?', 'misfit', 'BOOLEAN'),
        custom('"; DROP TABLE crm_order; --', 'misfit', 'NUMBER'),
        custom('delivered at', 'misfit', 'DATETIME'),
        custom('数量', 'misfit', 'INTEGER'),
      ],
      HOSTILE,
    ),
    customObject('Order', 'Order (old)', [custom('total', 'huge', 'NUMBER')], HOSTILE),
    customObject('site visit', 'Site visit', [custom('visited at', 'datetime', 'DATETIME')]),
    customObject('x"; drop table members; --', 'Quoted "object"', [custom('note', 'text', 'TEXT')], HOSTILE),
    customObject('契約書', '契約書', [custom('金額', 'decimal', 'NUMBER'), custom('締結日', 'date', 'DATE')]),
    customObject(
      `o_${'y'.repeat(298)}`,
      'Object with a long name',
      [custom('note', 'text', 'TEXT')],
      HOSTILE,
    ),
    customObject('legacy_ticket', 'Legacy ticket', [custom('state', 'options', 'SELECT')], {
      isReadable: false,
      isActive: false,
      ...HOSTILE,
    }),
  ]
}

export const PIPELINES = ['New business', 'Renewals'] as const
export const STAGES = [
  ['Qualified', 'Demo done', 'Proposal', 'Negotiation', 'Won', 'Lost'],
  ['Upcoming', 'Contacted', 'Quote sent', 'Renewed', 'Churned'],
] as const
export const REALISTIC_STAGES = [
  ['Qualified', 'Demo done', 'NDA signed', 'Negotiation', 'Contract active', 'Lost'],
  STAGES[1],
] as const
/** The probabilities of a realistic workspace: per cent in the first pipeline, fractions in the second. */
export const STAGE_PROBABILITIES: Readonly<Record<string, number>> = {
  ...{ Qualified: 10, 'Demo done': 25, 'NDA signed': 40, Negotiation: 70, 'Contract active': 100, Lost: 0 },
  ...{ Upcoming: 0.2, Contacted: 0.4, 'Quote sent': 0.7, Renewed: 1, Churned: 0 },
}
/** The won stage of the first pipeline before 'Contract active'. `parley demo` deletes it. */
export const FORMER_STAGE = 'Won (old process)'
export const CURRENCIES = ['EUR', 'USD', 'JPY'] as const
export const OPEN_FORECASTS = ['Pipeline', 'Best case', 'Commit', 'Omitted'] as const
export const CLOSED_FORECAST = 'Closed'
export const DEAL_TOPICS = [
  'Pilot',
  'Rollout',
  'Annual licence',
  'Expansion',
  'Add-on seats',
  'Renewal 2026',
  '本格導入',
] as const
export const OPTION_VALUES = ['New', 'Existing', 'Partner', '更新', 'Other / unknown'] as const
