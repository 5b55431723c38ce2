import { plain } from './field-guesses.ts'

/** What a stage says of the deals in it. Pure. */

export type DealOutcome = 'open' | 'won' | 'lost' | 'closed' | 'unknown'

export interface StageFacts {
  id: string
  name: string | null
  pipelineId: string | null
  pipeline: string | null
  position: number | null
  /** The probability of the stage itself, from 0 to 1. */
  chance: number | null
  /**
   * Numbers of live deals in the stage: all, and those whose own fields say that they are open, closed, won or lost.
   */
  deals: number
  open: number
  closed: number
  won: number
  lost: number
  /** The least and the greatest probability of these deals, from 0 to 1. */
  probability: { least: number; most: number } | null
}

export interface StageRules {
  /** Stages that the settings name, by id, as `Pipeline/Stage`, or by name. */
  won: readonly string[]
  lost: readonly string[]
}

interface StageOutcome {
  outcome: DealOutcome
  isGuessed: boolean
  why: string
}

/**
 * Names of stages, and values of a deal's status, by what they mean. Names are compared as a whole: “NDA signed” and
 * “Not won” contain such words and mean something else.
 */
const NAMES: Readonly<Record<Exclude<DealOutcome, 'unknown'>, readonly string[]>> = {
  won: [
    ...['won', 'closed won', 'deal won', 'won deal', 'renewed'],
    ...['受注', '受注済み', '受注済', '受注確定', '成約', '成約済み', '成約済', '更新済み'],
    ...['gewonnen', 'abgeschlossen und gewonnen', 'gagné', 'gagnée', 'fermé gagné', 'ganado', 'ganada'],
    ...['cerrado ganado', 'cerrada ganada', 'ganho', 'fechado ganho', 'vinto', 'vinta'],
  ],
  lost: [
    ...['lost', 'closed lost', 'deal lost', 'lost deal', 'churned'],
    ...['失注', '失注済み', '失注済', '失注確定', '不成約'],
    ...['verloren', 'abgeschlossen und verloren', 'perdu', 'perdue', 'fermé perdu', 'perdido', 'perdida'],
    ...['cerrado perdido', 'cerrada perdida', 'fechado perdido', 'perso', 'persa'],
  ],
  closed: [
    'closed',
    'クローズ',
    'クローズ済み',
    '終了',
    'geschlossen',
    'fermé',
    'fermée',
    'cerrado',
    'cerrada',
    'fechado',
  ],
  open: [
    'open',
    'in progress',
    '進行中',
    '商談中',
    'offen',
    'ouvert',
    'ouverte',
    'abierto',
    'abierta',
    'aberto',
  ],
}

const BY_NAME: ReadonlyMap<string, DealOutcome> = new Map(
  Object.entries(NAMES).flatMap(([outcome, names]) =>
    names.map(name => [plain(name), outcome as DealOutcome] as const),
  ),
)

/** What the name of a stage or a status means by itself. */
export const outcomeOfName = (name: string): DealOutcome => BY_NAME.get(plain(name)) ?? 'unknown'

export function outcomesOf(stages: readonly StageFacts[], rules: StageRules) {
  const isIn = (outcome: 'won' | 'lost', stage: StageFacts) =>
    rules[outcome].some(entry => isNamed(entry, stage))
  const set = (stage: StageFacts): StageOutcome | undefined => {
    const outcome = (['won', 'lost'] as const).find(each => isIn(each, stage))
    if (outcome === undefined) return undefined
    return { outcome, isGuessed: false, why: `The settings name it in crm.deal.${outcome}.` }
  }
  const known = new Map(stages.map(stage => [stage.id, set(stage) ?? byOwnFacts(stage, stages)]))
  const outcomes = new Map(
    stages.map(stage => [stage.id, known.get(stage.id) ?? byPipeline(stage, stages, known)]),
  )
  return {
    /** By the id of the stage. */
    outcomes,
    /** Entries of the settings that name no stage. */
    unmatched: [...rules.won, ...rules.lost].filter(entry => !stages.some(stage => isNamed(entry, stage))),
    /** Stages that the settings name both as won and as lost. They count as won. */
    namedTwice: stages.filter(stage => isIn('won', stage) && isIn('lost', stage)),
  }
}

/** Whether an entry of the settings means this stage. */
export function isNamed(
  entry: string,
  { id, name, pipeline }: Pick<StageFacts, 'id' | 'name' | 'pipeline'>,
): boolean {
  if (entry === id) return true
  const wanted = entry.trim().toLowerCase()
  const own = (name ?? '').trim().toLowerCase()
  return own !== '' && (wanted === own || wanted === `${(pipeline ?? '').trim().toLowerCase()}/${own}`)
}

const guess = (outcome: DealOutcome, why: string): StageOutcome => ({ outcome, isGuessed: true, why })

/** Undefined when neither the deals in the stage nor its name say what it means. */
function byOwnFacts(stage: StageFacts, stages: readonly StageFacts[]): StageOutcome | undefined {
  const { deals, open, closed, won, lost, probability } = stage
  const named = stage.name === null ? 'unknown' : outcomeOfName(stage.name)
  const told = open + closed
  const all = deals === 1 ? 'Its only deal is' : `All ${deals} deals in it are`
  const toldAll =
    told === deals
      ? all
      : `${told} of the ${deals} deals in it say whether they are closed, and all of these are`
  if (told > 0 && won === told) return guess('won', `${toldAll} won.`)
  if (told > 0 && lost === told) return guess('lost', `${toldAll} lost.`)
  if (told > 0 && open === told) return guess('open', `${toldAll} open.`)
  if (closed < told && closed > 0)
    return guess('unknown', `${closed} of the ${deals} deals in it are closed, and ${open} are open.`)
  if (told > 0 && (stage.chance === 1 || stage.chance === 0))
    return guess(
      stage.chance === 1 ? 'won' : 'lost',
      `${toldAll} closed, and its probability is ${stage.chance * 100} %.`,
    )
  if (told > 0 && named !== 'won' && named !== 'lost')
    return guess('closed', `${toldAll} closed, and nothing says whether they are won.`)
  if (probability?.least === 1) return guess('won', `${all} certain: their probability is 100 %.`)
  if (probability?.most === 0 && isLast(stage, stages))
    return guess(
      'lost',
      `${all} without a chance: their probability is 0 %, and the stage comes after all that have one.`,
    )
  if (named !== 'unknown') return guess(named, `Its name says so.`)
  return undefined
}

/** Whether all stages with a probability come before this one. A probability of 0 may be that of a new deal. */
function isLast({ position, pipelineId }: StageFacts, stages: readonly StageFacts[]): boolean {
  const others = stages.filter(other => other.pipelineId === pipelineId && (other.probability?.most ?? 0) > 0)
  return (
    position !== null && others.length > 0 && others.every(other => (other.position ?? position) < position)
  )
}

/**
 * When a pipeline has a stage for won deals and one for lost deals, the stages before these mean open. A stage whose
 * name contains a word such as “lost” may be another end, so its outcome stays unknown.
 */
function byPipeline(
  stage: StageFacts,
  stages: readonly StageFacts[],
  known: ReadonlyMap<string, StageOutcome | undefined>,
): StageOutcome {
  const others = stages.filter(({ pipelineId }) => pipelineId === stage.pipelineId)
  const endsAs = (outcome: DealOutcome) => others.filter(({ id }) => known.get(id)?.outcome === outcome)
  const [won, lost] = [endsAs('won'), endsAs('lost')]
  const isOrdered = others.some(({ position }) => position !== null)
  const placeOf = ({ position }: StageFacts) => position ?? (isOrdered ? Number.POSITIVE_INFINITY : 0)
  const isBefore = [...won, ...lost].some(end => placeOf(stage) <= placeOf(end))
  const name = plain(stage.name ?? '')
  const mayEnd = name === '' || END_WORDS.some(word => name.includes(word))
  if (!mayEnd && won.length > 0 && lost.length > 0 && isBefore)
    return guess('open', 'Its pipeline has later stages for won and for lost deals.')
  return guess('unknown', 'Neither a field of its deals nor its name says what it means.')
}

const END_WORDS = [...NAMES.won, ...NAMES.lost, ...NAMES.closed].map(plain)
