import { join } from 'node:path'
import type { Fault, Faults } from '../../../src/simulator/faults/faults.ts'
import { routeTemplates } from '../../../src/simulator/operations/routes.ts'
import type { TruthKind } from '../../../src/simulator/world/truth.ts'
import { openSqlite } from '../../../src/store/database/sqlite.ts'
import { newFolder } from '../../support/parley-process.ts'
import { until } from '../../support/until.ts'
import { createDraw, type Draw } from '../../torture/draw.ts'
import type { DaemonTrial } from '../daemon-trial.ts'
import { type Action, type Actions, changed, patienceMs, USUAL, whileWrong } from './actions.ts'
import { FAILURES, ODD_ANSWERS, shown, WRONG_ANSWERS } from './hostile-answers.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

function pickOf<T>(draw: Draw, list: readonly T[]): T {
  const [first, ...rest] = list
  if (first === undefined) throw new RangeError('nothing to choose from')
  return draw.pick([first, ...rest])
}

/** Wrong answers to the next requests of some routes. */
const blip: Action = async (trial, draw) => {
  const faults = Array.from({ length: 1 + draw.below(3) }, () => ({
    ...draw.pick(WRONG_ANSWERS),
    route: pickOf(draw, routeTemplates()),
    atMost: 1 + draw.below(2),
  }))
  const hits = await whileWrong(trial, faults, () => trial.requests(20 + draw.below(60)))
  return { told: `blips ${JSON.stringify(faults)}`, hits }
}

/** For a moment every answer is the same wrong one, as from a proxy without its backend. */
const blipOfAll: Action = async (trial, draw) => {
  const fault = draw.pick(WRONG_ANSWERS)
  const hits = await whileWrong(trial, [fault], () => trial.requests(1 + draw.below(6)))
  return { told: `all answers ${JSON.stringify(fault)}`, hits }
}

/** A maintenance page with a Retry-After of an hour that ends at once. */
const maintenance: Action = async trial => {
  const hits = await whileWrong(trial, [{ kind: 'status', status: 503, retryAfter: 3600 }], () =>
    trial.requests(3),
  )
  return { told: 'a maintenance page', hits }
}

/** Several replicas, some of which lag. */
const lag: Action = async (trial, draw) => {
  const fault = {
    kind: 'lag',
    probability: 0.3 + draw.below(5) / 10,
    delayMs: 300 + draw.below(4000),
  } as const
  const told: string[] = []
  const hits = await whileWrong(trial, [fault], async () => {
    for (let change = 0; change < 3; change++) {
      told.push(await changed(trial, draw))
      await trial.requests(5 + draw.below(20))
    }
  })
  return { told: `${JSON.stringify(fault)}; ${told.join('; ')}`, hits }
}

type KindOfId = readonly [kind: TruthKind, id: string]

/** The id of an item of a kind that still has one: half of all items may have been deleted, more than once. */
async function someId(trial: DaemonTrial, draw: Draw, kinds: readonly KindOfId[]): Promise<string> {
  const published = await Promise.all(
    kinds.map(async ([kind, id]) => (await trial.simulator.truth(kind)).map(item => String(item[id]))),
  )
  return pickOf(
    draw,
    pickOf(
      draw,
      published.filter(ids => ids.length > 0),
    ),
  )
}

const READ_SINGLY: readonly KindOfId[] = [
  ['meetings', 'meeting_id'],
  ['playbooks', 'id'],
]

const LISTED: readonly KindOfId[] = [
  ...READ_SINGLY,
  ['activities', 'id'],
  ['messages', 'id'],
  ['crm_records', 'id'],
  ['teams', 'id'],
  ['collections', 'id'],
]

/** Every answer for one item fails, alone and in a list, while others change. */
const stubbornItem: Action = async (trial, draw) => {
  const id = await someId(trial, draw, LISTED)
  const failure = draw.pick(FAILURES)
  const faults = draw.pick<Faults>([
    [{ ...failure, answerHas: id }],
    [
      { ...failure, requestHas: id },
      { ...failure, answerHas: id },
    ],
  ])
  const told: string[] = []
  const hits = await whileWrong(trial, faults, async () => {
    await trial.requests(20)
    told.push(await changed(trial, draw))
    await trial.requests(20 + draw.below(60))
  })
  return { told: `${JSON.stringify(faults)}; ${told}`, hits }
}

/** Every single read fails for an item that its list shows. */
const stubbornRead: Action = async (trial, draw) => {
  const id = await someId(trial, draw, READ_SINGLY)
  const fault = { ...draw.pick(WRONG_ANSWERS), requestHas: id }
  const hits = await whileWrong(trial, [fault], () => trial.requests(20 + draw.below(60)))
  return { told: JSON.stringify(fault), hits }
}

/** All answers about one CRM object are wrong: its metadata, its records, and their links. */
const stubbornObject: Action = async (trial, draw) => {
  const { name } = pickOf(draw, await trial.simulator.truth('crm_objects'))
  const fault = { ...draw.pick(WRONG_ANSWERS), requestHas: `/v2/objects/${encodeURIComponent(String(name))}` }
  const told: string[] = []
  const hits = await whileWrong(trial, [fault], async () => {
    await trial.requests(20 + draw.below(60))
    told.push(await changed(trial, draw))
  })
  return { told: `${JSON.stringify(fault)}; ${told}`, hits }
}

/** Pages that are too large unless fewer items are asked for. */
const largePages: Action = async (trial, draw) => {
  const told: string[] = []
  const fault = { kind: 'bloat', bytesPerItem: 30_000 + draw.below(100_000) } as const
  const hits = await whileWrong(trial, [fault], async () => {
    told.push(await changed(trial, draw))
    await trial.requests(20 + draw.below(60))
  })
  return { told: `pages that are too large; ${told}`, hits }
}

const oddAnswers: Action = async (trial, draw) => {
  const fault = draw.pick(ODD_ANSWERS)
  const told: string[] = []
  const hits = await whileWrong(trial, [fault], async () => {
    await trial.requests(20 + draw.below(60))
    told.push(await changed(trial, draw))
    await trial.requests(20)
  })
  return { told: `${shown(fault)}; ${told}`, hits }
}

/** A row loses its event time, and is deleted before the time comes back. */
const deleteTimeless: Action = async (trial, draw) => {
  const { resource, table, time } = draw.pick([
    { resource: 'messages', table: 'message_copies', time: 'received_at' },
    { resource: 'activities', table: 'activities', time: 'occurred_at' },
  ] as const)
  const id = String(pickOf(draw, await trial.simulator.truth(resource))['id'])
  const instead = draw.pick(['null', '"no time"'] as const)
  const fault: Fault = {
    kind: 'rewrite',
    answerHas: id,
    from: `("id":"${id}".*?"${time}":)"[^"]*"`,
    to: `$1${instead}`,
  }
  const isTimeless = () =>
    trial.rows(`SELECT 1 FROM ${table} WHERE ${time} IS NULL AND id = ?`, id).length > 0
  let wasTimeless = false
  const hits = await whileWrong(trial, [fault], async () => {
    // Its list falls due whatever the age of the row.
    await trial.leap(trial.weekMs)
    wasTimeless = await until(isTimeless, seen => seen, { patienceMs: patienceMs(trial) })
    await trial.simulator.change({ kind: 'delete', resource, id })
    await trial.requests(20)
  })
  const when = wasTimeless ? 'once its time was' : 'before its time was'
  return { told: `delete of ${resource} ${id} ${when} ${instead}`, hits: wasTimeless ? hits : 0 }
}

/** Half of all items of one kind are really deleted. */
const halve: Action = async (trial, draw) => {
  const resource = draw.pick(['messages', 'activities', 'meetings', 'members', 'crm_records'] as const)
  const kind = draw.pick(['delete', 'hide'] as const)
  const count = Math.floor((await trial.simulator.truth(resource)).length / 2)
  const { ids } = await trial.simulator.change({ kind, resource, count })
  return { told: `${kind} ${ids.length} ${resource}` }
}

/** The machine sleeps, alone or together with the service. */
const sleep: Action = async (trial, draw) => {
  const hours = draw.pick([1, 5, 30, 24 * 8] as const)
  const told = await changed(trial, draw)
  await trial.leap((hours * trial.weekMs) / (7 * 24))
  return { told: `${told}; asleep for ${hours} hours` }
}

/** The daemon starts with a wrong clock, which is set right while it runs or before the next start. */
const startWithWrongClock: Action = async (trial, draw) => {
  const offMs = draw.pick([40 * DAY, -40 * DAY, HOUR, -HOUR] as const)
  await trial.kill()
  trial.setClock(offMs)
  trial.go()
  const told = await changed(trial, draw)
  await trial.requests(20 + draw.below(60))
  const isRunning = draw.below(2) === 0
  if (!isRunning) await trial.kill()
  trial.setClock(0)
  return {
    told: `started with a clock ${offMs / HOUR} hours off; ${told}; set right ${isRunning ? 'while it ran' : 'before its next start'}`,
  }
}

/** Another program opens the file, writes, holds it, copies from it, and closes it, perhaps as the last. */
const meddle: Action = async (trial, draw) => {
  const isStopped = draw.below(2) === 0
  if (isStopped) await trial.kill()
  if (trial.rows('SELECT 1').length === 0) return { told: 'no one meddles with a file that is not there' }
  const db = openSqlite(trial.database, { timeout: 20_000 })
  try {
    // The setting of most programs.
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
  attachFromOutside(trial.database)
  return { told: `another program wrote${isStopped ? ' while none ran' : ''}` }
}

/** Attaches the warehouse to an analyst's file; closing that file closes the warehouse too. */
function attachFromOutside(warehouse: string): void {
  const own = openSqlite(join(newFolder(), 'own.db'), { timeout: 20_000 })
  try {
    own.pragma('foreign_keys = OFF')
    own.prepare('ATTACH ? AS warehouse').run(warehouse)
    own.exec('CREATE TABLE copied AS SELECT * FROM warehouse.live_meetings')
    own.prepare('INSERT INTO warehouse.notes_of_mine VALUES (?, ?)').run('of no meeting', 'from outside')
  } finally {
    own.close()
  }
}

/** Unusual actions, by the name of the option of soak.ts. */
export const HOSTILE = {
  blips: [blip],
  'blips-of-all': [blipOfAll],
  maintenance: [maintenance],
  lag: [lag],
  stubborn: [stubbornItem, stubbornRead, stubbornObject],
  large: [largePages],
  odd: [oddAnswers],
  timeless: [deleteTimeless],
  halved: [halve],
  asleep: [sleep],
  'wrong-clock': [startWithWrongClock],
  meddled: [meddle],
} as const satisfies Readonly<Record<string, Actions>>

export type HostileName = keyof typeof HOSTILE

export const HOSTILE_NAMES = Object.keys(HOSTILE) as readonly HostileName[]

/** Each of these actions is as frequent as all usual ones together, so that they combine. */
export function withUsual(names: readonly HostileName[]): Actions {
  const hostile = names.flatMap((name): readonly Action[] => HOSTILE[name])
  const [first, ...rest] = USUAL
  return [first, ...rest, ...hostile.flatMap(action => USUAL.map(() => action))]
}

/** Every hostile action once, in an order by seed. */
export function everyAction(seed: number): Action[] {
  const draw = createDraw(seed)
  const left: Action[] = Object.values(HOSTILE).flat()
  return Array.from({ length: left.length }, () => left.splice(draw.below(left.length), 1)).flat()
}
