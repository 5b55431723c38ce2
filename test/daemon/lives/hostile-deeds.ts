import Database from 'better-sqlite3'
import type { Faults } from '../../../src/simulator/faults.ts'
import { routeTemplates } from '../../../src/simulator/routes.ts'
import type { TruthKind } from '../../../src/simulator/world/truth.ts'
import type { Draw } from '../../torture/draw.ts'
import type { DaemonTrial } from '../daemon-trial.ts'
import { changeSome, type Deed, type Deeds, USUAL } from './deeds.ts'
import { FAILURES, ODD_ANSWERS, shown, WRONG_ANSWERS } from './hostile-answers.ts'

const pickRoute = (draw: Draw): string => {
  const [first = '', ...rest] = routeTemplates()
  return draw.pick([first, ...rest])
}

/** Wrong answers to the next requests of some routes. */
const blip: Deed = async (trial, draw) => {
  const faults = Array.from({ length: 1 + draw.below(3) }, () => ({
    ...draw.pick(WRONG_ANSWERS),
    route: pickRoute(draw),
    first: 1 + draw.below(2),
  }))
  await trial.simulator.setFaults(faults)
  await trial.requests(20 + draw.below(60))
  await trial.simulator.setFaults([])
  return `blips ${JSON.stringify(faults)}`
}

/** For a moment every answer is the same wrong one, as of a proxy that has lost its backend. */
const blipOfAll: Deed = async (trial, draw) => {
  const fault = draw.pick(WRONG_ANSWERS)
  await trial.simulator.setFaults([fault])
  await trial.requests(1 + draw.below(6))
  await trial.simulator.setFaults([])
  return `all answers ${JSON.stringify(fault)}`
}

/** A maintenance page that tells to come back in an hour, and is over at once. */
const maintenance: Deed = async trial => {
  await trial.simulator.setFaults([{ kind: 'status', status: 503, retryAfter: 3600 }])
  await trial.requests(3)
  await trial.simulator.setFaults([])
  return 'a maintenance page'
}

/** Several replicas, some of which lag. */
const lag: Deed = async (trial, draw) => {
  const fault = {
    kind: 'lag',
    probability: 0.3 + draw.below(5) / 10,
    delayMs: 300 + draw.below(4000),
  } as const
  const told: string[] = []
  await trial.simulator.setFaults([fault])
  for (let change = 0; change < 3; change++) {
    told.push(await changeSome(trial, draw))
    await trial.requests(5 + draw.below(20))
  }
  await trial.simulator.setFaults([])
  return `${JSON.stringify(fault)}; ${told.join('; ')}`
}

async function someId(trial: DaemonTrial, draw: Draw): Promise<string> {
  const [kind, id] = draw.pick<readonly [TruthKind, string]>([
    ['activities', 'id'],
    ['messages', 'id'],
    ['meetings', 'meeting_id'],
    ['crm_records', 'id'],
    ['teams', 'id'],
    ['collections', 'id'],
    ['playbooks', 'id'],
  ])
  const [first = {}, ...rest] = await trial.simulator.truth(kind)
  return String(draw.pick([first, ...rest])[id])
}

/** Every answer for one item fails, alone and in a list, while others change. */
const stubbornItem: Deed = async (trial, draw) => {
  const id = await someId(trial, draw)
  const failure = draw.pick(FAILURES)
  const faults = draw.pick<Faults>([
    [{ ...failure, naming: id }],
    [{ ...failure, showing: id }],
    [
      { ...failure, naming: id },
      { ...failure, showing: id },
    ],
  ])
  await trial.simulator.setFaults(faults)
  await trial.requests(20)
  const told = await changeSome(trial, draw)
  await trial.requests(20 + draw.below(60))
  await trial.simulator.setFaults([])
  return `${JSON.stringify(faults)}; ${told}`
}

/** Pages that are too large unless fewer items are asked for. */
const largePages: Deed = async (trial, draw) => {
  await trial.simulator.setFaults([{ kind: 'bloat', bytesOfItem: 30_000 + draw.below(100_000) }])
  const told = await changeSome(trial, draw)
  await trial.requests(20 + draw.below(60))
  await trial.simulator.setFaults([])
  return `pages that are too large; ${told}`
}

const oddAnswers: Deed = async (trial, draw) => {
  const fault = draw.pick(ODD_ANSWERS)
  await trial.simulator.setFaults([fault])
  await trial.requests(20 + draw.below(60))
  const told = await changeSome(trial, draw)
  await trial.requests(20)
  await trial.simulator.setFaults([])
  return `${shown(fault)}; ${told}`
}

/** Half of everything of one kind is really gone. */
const halve: Deed = async (trial, draw) => {
  const resource = draw.pick(['messages', 'activities', 'meetings', 'members', 'crm_records'] as const)
  const kind = draw.pick(['delete', 'hide'] as const)
  const count = Math.floor((await trial.simulator.truth(resource)).length / 2)
  const { ids } = await trial.simulator.change({ kind, resource, count })
  return `${kind} ${ids.length} ${resource}`
}

/** The machine sleeps, alone or together with the service. */
const sleep: Deed = async (trial, draw) => {
  const hours = draw.pick([1, 5, 30, 24 * 8] as const)
  const told = await changeSome(trial, draw)
  await trial.leap((hours * trial.weekMs) / (7 * 24))
  return `${told}; asleep for ${hours} hours`
}

/** Another program opens the file, writes, holds it, and closes it, perhaps as the last. */
const meddle: Deed = async (trial, draw) => {
  const isStopped = draw.below(2) === 0
  if (isStopped) await trial.kill()
  if (trial.rows('SELECT 1').length === 0) return 'nobody meddles with a file that is not there'
  const db = new Database(trial.database, { timeout: 20_000 })
  try {
    // As most programs have it.
    db.pragma('foreign_keys = OFF')
    db.exec('CREATE TABLE IF NOT EXISTS notes_of_mine (meeting REFERENCES meetings (id), note TEXT)')
    db.exec('BEGIN IMMEDIATE')
    db.prepare('INSERT INTO notes_of_mine VALUES (?, ?)').run('of no meeting', `${draw.below(1000)}`)
    await trial.requests(isStopped ? 0 : draw.below(6))
    db.exec('COMMIT')
    db.exec("ATTACH ':memory:' AS other; CREATE TABLE other.copied AS SELECT * FROM meetings; DETACH other")
  } finally {
    db.close()
  }
  return `another program wrote${isStopped ? ' while none ran' : ''}`
}

/** What may happen besides the usual, by the name of the torture's option. */
export const HOSTILE = {
  blips: [blip],
  'blips-of-all': [blipOfAll],
  maintenance: [maintenance],
  lag: [lag],
  stubborn: [stubbornItem],
  large: [largePages],
  odd: [oddAnswers],
  halved: [halve],
  asleep: [sleep],
  meddled: [meddle],
} as const satisfies Readonly<Record<string, Deeds>>

/** Each of these deeds as often as all of the usual ones together, so that they meet each other. */
export function withUsual(names: readonly (keyof typeof HOSTILE)[]): Deeds {
  const hostile = names.flatMap(name => HOSTILE[name])
  const [first, ...rest] = USUAL
  return [first, ...rest, ...hostile.flatMap(deed => USUAL.map(() => deed))]
}
