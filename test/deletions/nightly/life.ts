import { isoInstant } from '../../../src/base/clock.ts'
import { CATALOG } from '../../../src/catalog/catalog.ts'
import type { ResourceName } from '../../../src/declare/resource-names.ts'
import { resourceWithParts } from '../../../src/store/sync/resync.ts'
import { type RunOptions, startTrial, type Trial } from '../../engine/trial-backfill.ts'
import { refused, type ScriptedAnswer } from '../../support/scripted-api.ts'
import { createDraw, type Draw } from '../../torture/draw.ts'
import { ACTIONS, editAll } from './actions.ts'
import { startWorld, type World } from './world.ts'

/** A workspace that changes, and a warehouse that a backfill brings up to date each night. */
interface Life {
  world: World
  trial: Trial
  draw: Draw
  /** One line for each thing that was done. */
  told: string[]
}

const RESOURCES = CATALOG.map(({ name }) => name)
const HOUR = 3_600_000
const DAY = 24 * HOUR
const PURGED_AFTER = 30 * DAY
const NIGHTS = 8
const LIES = 8

/** An empty list of every kind of paging. */
const EMPTY: ScriptedAnswer = {
  body: {
    data: [],
    page_info: { end_cursor: null, has_next_page: false },
    pagination: { next_cursor: null, page: 1, limit: 200, total_size: 0, total_pages: 0 },
  },
}

/**
 * Lives a random life: nights of which many go wrong, then quiet ones, then nights with a single wrong answer each.
 * The same seed is the same life, but for the order of simultaneous requests. Returns what was done and what is wrong.
 */
export async function live(seed: number): Promise<{ told: string[]; differences: string[]; lost: string[] }> {
  const world = await startWorld()
  const life: Life = { world, trial: await startTrial(world.api), draw: createDraw(seed), told: [] }
  await pass(life, 0)
  for (let night = 0; night < NIGHTS; night++) await hostileNight(life)
  await rest(life, 9)
  await pass(life, PURGED_AFTER + DAY)
  await rest(life, 9)
  const [stored, published] = [cells(life.trial), await freshCells(world)]
  const differences = [
    ...without(stored, published).map(cell => `stored, not published: ${cell}`),
    ...without(published, stored).map(cell => `published, not stored: ${cell}`),
  ]
  const lost: string[] = []
  for (let lie = 0; lie < LIES; lie++) {
    // Consecutive seeds cover all routes.
    const route = world.routes[(seed * LIES + lie) % world.routes.length] ?? ''
    lost.push(...(await nightWithOneLie(life, route)))
  }
  return { told: life.told, differences, lost }
}

/** Lets time pass, purges old deletions, and runs a backfill. */
async function pass(
  { trial }: Life,
  ms: number,
  options: RunOptions = {},
  resources: readonly ResourceName[] = RESOURCES,
): Promise<void> {
  trial.passTime(ms)
  const now = trial.clock.now()
  const purged = { before: isoInstant(now - PURGED_AFTER), limit: 10_000, now: isoInstant(now) }
  await trial.store.transaction(() => trial.store.purger.purge(purged))
  await trial.run(resources, options)
}

async function rest(life: Life, nights: number): Promise<void> {
  for (let night = 0; night < nights; night++) await pass(life, DAY)
}

async function hostileNight(life: Life): Promise<void> {
  const { world, draw, told } = life
  for (let left = 1 + draw.below(6); left > 0; left--) told.push(draw.pick(ACTIONS)(world, draw))
  if (draw.below(5) < 2) answerWrong(life)
  const ms = draw.pick([HOUR, DAY, DAY, 3 * DAY, 40 * DAY])
  told.push(`a night after ${ms / HOUR} h:`)
  await draw.pick([pass, pass, pass, aborted, aborted, aborted, bounded, partial, resynced])(life, ms)
  world.instead = () => undefined
}

/** Replaces one to three consecutive answers, at a random position, with the same refusal or with an empty page. */
function answerWrong({ world, draw, told }: Life): void {
  const answer = draw.pick([refused(404), refused(403), refused(500), EMPTY])
  let [before, left] = [draw.below(40), 1 + draw.below(3)]
  told.push(`${left} answers after ${before} are ${JSON.stringify(answer)}`)
  world.instead = () => (before-- > 0 || left-- <= 0 ? undefined : answer)
}

type Night = (life: Life, ms: number) => Promise<void>

const aborted: Night = (life, ms) => {
  const { instead } = life.world
  const controller = new AbortController()
  let left = life.draw.below(60)
  life.told.push(`aborted after ${left} requests`)
  life.world.instead = request => {
    if (left-- === 0) controller.abort()
    return instead(request)
  }
  return pass(life, ms, { signal: controller.signal })
}

const bounded: Night = (life, ms) => {
  life.told.push('bounded by --since')
  return pass(life, ms, { since: isoInstant(Date.now() - DAY / 2) })
}

const partial: Night = (life, ms) => {
  const resources = resourceWithParts(anyResource(life))
  life.told.push(`only ${resources.join(', ')}`)
  return pass(life, ms, {}, resources)
}

const resynced: Night = async (life, ms) => {
  const { store, clock } = life.trial
  const resources = resourceWithParts(anyResource(life))
  life.told.push(`resync of ${resources.join(', ')}`)
  await store.transaction(() => store.resync(resources, isoInstant(clock.now())))
  await pass(life, ms)
}

const anyResource = ({ draw }: Life) => RESOURCES[draw.below(RESOURCES.length)] ?? 'messages'

/** Edits a row of each list and gives one wrong answer. Returns the published cells that are lost by it. */
async function nightWithOneLie(life: Life, route: string): Promise<string[]> {
  const { world, trial, draw, told } = life
  // These documents may have any shape, so an empty list is a valid one.
  const isDocument = /execution-setting|integrations/.test(route)
  const answer = draw.pick([refused(404), refused(403), isDocument ? refused(404) : EMPTY])
  told.push(editAll(world, draw), `one answer of ${route} is ${JSON.stringify(answer)}`)
  const before = cells(trial)
  let left = 1
  world.instead = request => (request.route === route && left-- > 0 ? answer : undefined)
  await pass(life, DAY)
  world.instead = () => undefined
  const published = new Set(await freshCells(world))
  const lost = without(
    before.filter(cell => published.has(cell)),
    cells(trial),
  )
  await rest(life, 2)
  // Without a stored transcript, its state follows the last answer.
  return lost.filter(cell => !cell.includes(': transcript_state ')).map(cell => `${route} took ${cell}`)
}

/** Backfills a new warehouse from the same API, and returns the cells of its live views. */
async function freshCells({ api }: World): Promise<string[]> {
  const fresh = await startTrial(api)
  fresh.moveClock(api.aheadMs)
  await fresh.run(RESOURCES)
  return cells(fresh)
}

/** Conditions that leave out rows which a new warehouse cannot know: no list shows them, or they are history. */
const COMPARED: Readonly<Record<string, string>> = {
  live_meetings: "access <> 'withheld'",
  live_playbooks: 'active = 1',
  live_playbook_talk_points: 'playbook_id IN (SELECT id FROM playbooks WHERE active = 1)',
  live_activities: 'id IN (SELECT activity_id FROM live_activity_links)',
  live_crm_record_changes: 'FALSE',
}

/** The state of a copy depends on which copies were there when the text was read. */
const LEFT_OPEN = ['_id', 'text_state', '_text_due']

/** The content of the live views: each cell of a row with an id, and each other row as a whole. */
function cells(trial: Trial): string[] {
  const views = trial.column("SELECT name FROM sqlite_master WHERE type = 'view' AND name GLOB 'live_*'")
  return views.map(String).flatMap(view =>
    trial.all(`SELECT * FROM "${view}" WHERE ${COMPARED[view] ?? 'TRUE'}`).flatMap(row => {
      const shown = Object.entries(row).filter(([column]) => !LEFT_OPEN.includes(column))
      if (row['id'] === undefined) return `${view} ${JSON.stringify(shown)}`
      return shown.map(([column, value]) => `${view} ${row['id']}: ${column} ${JSON.stringify(value)}`)
    }),
  )
}

function without(some: readonly string[], others: readonly string[]): string[] {
  const excluded = new Set(others)
  return some.filter(cell => !excluded.has(cell))
}
