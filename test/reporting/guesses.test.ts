import { describe, expect, test } from 'vitest'
import { CRM_ROLES, type CrmRoles, type RoleObject } from '../../src/config/crm-roles.ts'
import { chooseFields, type FieldFacts } from '../../src/store/reporting/field-guesses.ts'
import { CRM_DEFAULTS, type CrmField } from './crm-defaults.ts'

const factsOf = ({ name, label, type, to }: CrmField): FieldFacts => ({
  name,
  label,
  type,
  isActive: true,
  isRelation: type === 'RELATION',
  ...(type === 'RELATION' && {
    target: to === 'members' ? { object: null, resource: 'members' } : { object: to ?? null, resource: null },
  }),
  filled: 100,
})

const targets = {
  company: (object: string) => object === 'company',
  stage: (object: string) => object === 'stage',
  pipeline: (object: string) => object === 'pipeline',
}

function guess(
  role: RoleObject,
  fields: readonly FieldFacts[],
  more: Partial<Parameters<typeof chooseFields>[1]> = {},
) {
  const roles: CrmRoles = CRM_ROLES[role]
  const chosen = chooseFields(roles, { object: role, fields, set: {}, before: {}, targets, ...more })
  return Object.fromEntries(Object.entries(chosen).map(([name, { value }]) => [name, value]))
}

const CASES = CRM_DEFAULTS.flatMap(({ crm, roles, ...objects }) =>
  (['deal', 'company', 'contact'] as const).map(role => [crm, role, objects[role], roles[role]] as const),
)

/** What no rule finds without being wrong elsewhere: a choice in place of a number, a total, a bare “reason”. */
const MISSED = [
  'Mazrica Sales (Senses) deal.probability',
  'Mazrica Sales (Senses) deal.lost_reason',
  'board deal.amount',
  'board deal.type',
]

describe('of the fields that a CRM has by default', () => {
  test.each(CASES)('%s: the guesses for a %s are those of a person, or none', (_crm, role, fields, roles) => {
    const guessed = guess(role, fields.map(factsOf))
    const wrong = Object.entries(guessed).filter(
      ([name, field]) => field !== undefined && roles[name] !== field,
    )
    expect(wrong).toEqual([])
  })

  test('all others are found', () => {
    const missed = CASES.flatMap(([crm, role, fields, roles]) => {
      const guessed = guess(role, fields.map(factsOf))
      return Object.keys(roles).flatMap(name =>
        name in CRM_ROLES[role] && guessed[name] === undefined ? [`${crm} ${role}.${name}`] : [],
      )
    })
    expect(missed).toEqual(MISSED)
  })
})

const field = (name: string, type: string, more: Partial<FieldFacts> = {}): FieldFacts => ({
  ...{ name, label: null, type, isActive: true, isRelation: false, filled: 100 },
  ...more,
})
const pointsAt = (name: string, object: string | null, resource: string | null = null) =>
  field(name, 'RELATION', { isRelation: true, target: { object, resource } })

test.each<[what: string, fields: FieldFacts[], role: string, found: string | undefined]>([
  [
    'a field that few have',
    [field('amount', 'NUMBER', { filled: 3 }), field('value', 'CURRENCY')],
    'amount',
    'value',
  ],
  [
    'the better name of two',
    [field('value', 'NUMBER'), field('amount', 'NUMBER', { filled: 60 })],
    'amount',
    'amount',
  ],
  [
    'a part of a name',
    [field('amount_of_seats', 'NUMBER'), field('tax_amount', 'NUMBER')],
    'amount',
    undefined,
  ],
  ['a name of another type', [field('amount', 'TEXT')], 'amount', undefined],
  ['a retired field', [field('amount', 'NUMBER', { isActive: false })], 'amount', undefined],
  ['a label in other letters', [field('f_17', 'NUMBER', { label: 'ＡＭＯＵＮＴ' })], 'amount', 'f_17'],
  ['a field of the workspace in Salesforce', [field('Amount__c', 'CURRENCY')], 'amount', 'Amount__c'],
  ['what points at a stage', [pointsAt('where', 'stage')], 'stage', 'where'],
  [
    'two that point at a company',
    [pointsAt('buyer', 'company'), pointsAt('partner', 'company')],
    'company',
    undefined,
  ],
  ['a member who is no owner', [pointsAt('created_by', 'member', 'members')], 'owner', undefined],
  ['an owner who is no member', [pointsAt('owner', 'team')], 'owner', undefined],
])('a guess finds or leaves %s', (_what, fields, role, found) => {
  expect(guess('deal', fields)[role]).toBe(found)
})

describe('the settings', () => {
  const fields = [field('amount', 'NUMBER'), field('worth', 'NUMBER'), field('title', 'TEXT')]
  const chosen = (set: Record<string, string>, before: Record<string, { value: string; why: string }> = {}) =>
    chooseFields(CRM_ROLES.deal, { object: 'deal', fields, set, before, targets })

  test('decide against a guess', () => {
    expect(chosen({ amount: 'worth' }).amount).toMatchObject({ value: 'worth', isGuessed: false })
  })

  test('are no error where the CRM has no such object', () => {
    const { amount } = chooseFields(CRM_ROLES.deal, {
      ...{ object: undefined, fields: [], set: { amount: 'worth' }, before: {}, targets },
    })
    expect(amount).toEqual({ value: undefined, isGuessed: false, why: 'The CRM has no such object.' })
  })

  test('may say that there is no such field', () => {
    expect(chosen({ amount: 'none' }).amount).toMatchObject({ value: undefined, isGuessed: false })
  })

  test('where no field holds when a deal was created, the reason says what is used', () => {
    const used = 'crm_records.created_at, which the API gives, is used.'
    expect(chosen({}).created?.why).toBe(`No field of deal looks like when the deal was created. ${used}`)
    expect(chosen({ created: 'none' }).created?.why).toBe(`The settings say that there is none. ${used}`)
  })

  test('that name a field that is gone are an error that lists the fields, and nothing is guessed instead', () => {
    expect(chosen({ amount: 'price' }).amount).toEqual({
      value: undefined,
      isGuessed: false,
      isMissing: true,
      why: 'The settings name price, which deal does not have. It has: amount, worth, title.',
    })
  })

  test('take a field away from the guesses for other roles', () => {
    expect(chosen({ next_step: 'title' }).name.value).toBeUndefined()
  })

  test('a field that one role keeps from an earlier guess is not taken by another', () => {
    const before = { next_step: { value: 'title', why: '' } }
    const { name, next_step } = chosen({}, before)
    expect([name.value, next_step.value]).toEqual([undefined, 'title'])
  })

  test('an earlier guess is kept while its field exists, though another would be guessed today', () => {
    const before = { amount: { value: 'worth', why: 'Guessed in spring.' } }
    expect(chosen({}, before).amount).toMatchObject({
      value: 'worth',
      isGuessed: true,
      why: 'Guessed in spring.',
    })
    expect(chosen({}, { amount: { value: 'gone', why: '' } }).amount.value).toBe('amount')
  })
})
