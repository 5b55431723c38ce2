import { describe, expect, test } from 'vitest'
import {
  type DealOutcome,
  outcomeOfName,
  outcomesOf,
  type StageFacts,
  type StageRules,
} from '../../src/store/reporting/stage-outcomes.ts'
import { CRM_DEFAULTS, HOSTILE_STAGES } from './crm-defaults.ts'

test.each(HOSTILE_STAGES)(
  'the name of a stage, $name, means nothing that it does not say',
  ({ name, outcome }) => {
    expect([outcome, 'unknown']).toContain(outcomeOfName(name))
  },
)

const NO_RULES: StageRules = { won: [], lost: [] }

const stage = (name: string, more: Partial<StageFacts> = {}): StageFacts => ({
  ...{ id: name, name, pipelineId: 'p', pipeline: 'Sales', position: null, chance: null },
  ...{ deals: 0, open: 0, closed: 0, won: 0, lost: 0, probability: null },
  ...more,
})

const found = (stages: readonly StageFacts[], rules: Partial<StageRules> = {}) => {
  const { outcomes } = outcomesOf(stages, { ...NO_RULES, ...rules })
  return Object.fromEntries([...outcomes].map(([id, { outcome }]) => [id, outcome]))
}

describe('of the stages that a CRM has by default', () => {
  test.each(CRM_DEFAULTS.map(({ crm, stages }) => [crm, stages] as const))(
    '%s: no stage is wrongly won, lost or open',
    (_crm, stages) => {
      const facts = stages.map(({ name }, position) => stage(name, { position }))
      const guessed = found(facts)
      // Where deals have a status of their own, stages are open, and a pipeline has none for won and lost deals.
      const wrong = stages.filter(({ name, outcome }) => ![outcome, 'unknown'].includes(guessed[name] ?? ''))
      expect(wrong.map(({ name, outcome }) => `${name} is ${outcome}, not ${guessed[name]}`)).toEqual([])
    },
  )
})

const deals = (count: number, more: Partial<StageFacts> = {}) => ({ deals: count, ...more })
const chance = (least: number, most = least) => ({ deals: 3, probability: { least, most } })

test.each<[what: string, stages: StageFacts[], rules: Partial<StageRules>, outcomes: DealOutcome[]]>([
  [
    'the settings beat everything',
    [stage('Won', deals(2, { lost: 2, closed: 2 }))],
    { won: ['won'] },
    ['won'],
  ],
  ['by id', [stage('x', { id: 's-1' })], { lost: ['s-1'] }, ['lost']],
  [
    'by pipeline and stage',
    [stage('Done'), stage('Done', { id: '2', pipeline: 'Renewals' })],
    { won: ['sales/DONE'] },
    ['won', 'unknown'],
  ],
  ['all its deals are won', [stage('Contract active', deals(2, { won: 2, closed: 2 }))], {}, ['won']],
  ['all its deals are lost', [stage('Later', deals(2, { lost: 2, closed: 2 }))], {}, ['lost']],
  ['none is closed', [stage('Won back', deals(2, { open: 2 }))], {}, ['open']],
  ['all are closed, and nothing says how', [stage('Archive', deals(2, { closed: 2 }))], {}, ['closed']],
  ['all are closed, and the name says how', [stage('Lost', deals(2, { closed: 2 }))], {}, ['lost']],
  [
    'all are closed, and the stage is certain',
    [stage('Archive', { ...deals(2, { closed: 2 }), chance: 1 })],
    {},
    ['won'],
  ],
  [
    'all are closed, and the stage has no chance',
    [stage('Archive', { ...deals(2, { closed: 2 }), chance: 0 })],
    {},
    ['lost'],
  ],
  [
    'the stage is certain, and its deals are not closed',
    [stage('Any', { ...deals(2), chance: 1 })],
    {},
    ['unknown'],
  ],
  ['its deals disagree', [stage('Won', deals(2, { open: 1, closed: 1 }))], {}, ['unknown']],
  ['all are certain', [stage('Signed', chance(1))], {}, ['won']],
  ['one is not certain', [stage('Signed', chance(0.9, 1))], {}, ['unknown']],
  [
    'none has a chance, after those that have one',
    [stage('Talk', { ...chance(0.2), position: 1 }), stage('Over', { ...chance(0), position: 2 })],
    {},
    ['unknown', 'lost'],
  ],
  [
    'none has a chance yet',
    [stage('New', { ...chance(0), position: 1 }), stage('Talk', { ...chance(0.2), position: 2 })],
    {},
    ['unknown', 'unknown'],
  ],
  [
    'its pipeline ends in won and lost',
    [stage('NDA signed'), stage('Won'), stage('Lost')],
    {},
    ['open', 'won', 'lost'],
  ],
  ['its pipeline has no lost', [stage('NDA signed'), stage('Won')], {}, ['unknown', 'won']],
  [
    'another pipeline ends so',
    [stage('NDA signed', { pipelineId: 'q' }), stage('Won'), stage('Lost')],
    {},
    ['unknown', 'won', 'lost'],
  ],
])('the outcome of a stage: %s', (_what, stages, rules, outcomes) => {
  expect(stages.map(({ id }) => found(stages, rules)[id])).toEqual(outcomes)
})

test('an entry of the settings that names no stage is reported', () => {
  const { unmatched } = outcomesOf([stage('Done')], {
    ...NO_RULES,
    won: ['done', 'Dnoe'],
    lost: ['Sales/Gone'],
  })
  expect(unmatched).toEqual(['Dnoe', 'Sales/Gone'])
})

test('a stage that is named as won and as lost counts as won and is reported, and both entries match', () => {
  const stages = [stage('Lost'), stage('Won')]
  const rules = { won: ['Lost', 'won'], lost: ['Sales/Lost'] }
  const { outcomes, unmatched, namedTwice } = outcomesOf(stages, rules)
  expect(outcomes.get('Lost')?.outcome).toBe('won')
  expect([unmatched, namedTwice]).toEqual([[], [stages[0]]])
})
