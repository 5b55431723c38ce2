import type { Fault } from '../../../src/simulator/faults/faults.ts'
import type { Fields } from '../../support/exact-json.ts'
import type { Draw } from '../../torture/draw.ts'
import type { DaemonTrial } from '../daemon-trial.ts'
import { changed } from './actions.ts'

/** An item that can never be read, and how to recognise it and its dependents among the differences. */
interface Stubborn {
  faults: Fault[]
  names: string[]
}

type Choose = (trial: DaemonTrial, draw: Draw, status: number) => Promise<Stubborn>

const someOf = (draw: Draw, items: readonly Fields[]): Fields => items[draw.below(items.length)] ?? {}

/** A meeting whose every single read fails, its transcript and its results among them. */
const meeting: Choose = async (trial, draw, status) => {
  const { meeting_id: id } = someOf(draw, await trial.simulator.truth('meetings'))
  const answers = await trial.simulator.truth('playbook_results')
  const results = answers.filter(one => one['meeting_id'] === id).flatMap(one => one['results'] as Fields[])
  return {
    faults: [{ kind: 'status', status, requestHas: String(id) }],
    names: [String(id), ...results.map(one => String(one['id']))],
  }
}

/** Statuses with a stated meaning for a list: the whole list is refused, and none of its rows can be read. */
const REFUSES_LISTS: readonly number[] = [403, 404]

/** A message that makes every page with it fail, and its activity too. */
const message: Choose = async (trial, draw, status) => {
  const failure = { kind: 'status', status: REFUSES_LISTS.includes(status) ? 500 : status } as const
  const { id, header_message_id: header } = someOf(draw, await trial.simulator.truth('messages'))
  const activities = await trial.simulator.truth('activities')
  const about = activities.filter(one => one['source_id'] === id).map(one => String(one['id']))
  const names = [String(id), ...(header ? [String(header)] : []), ...about]
  const faults = [
    { ...failure, answerHas: String(id) },
    { ...failure, requestHas: String(id) },
  ]
  return { faults, names }
}

const CHOICES: readonly [Choose, ...Choose[]] = [meeting, message]

/** The outcome with an item that can never be read. */
export interface Beside {
  told: string
  hits: number
  /** Differences in the rest of the warehouse. */
  differences: string[]
}

/** One item can never be read while the workspace changes: all others must become equal. */
export async function failForGood(
  trial: DaemonTrial,
  draw: Draw,
  converge: (besides: RegExp) => Promise<string[]>,
): Promise<Beside> {
  const status = draw.pick([403, 404, 410, 500])
  const { faults, names } = await draw.pick(CHOICES)(trial, draw, status)
  await trial.simulator.setFaults(faults)
  const told = `for good: ${JSON.stringify(faults)}; ${await changed(trial, draw)}`
  // A skipped span of time is noted as a reject.
  const besides = new RegExp([...names.map(escaped), 'sync_rejects: (messages|activities): '].join('|'))
  const differences = await converge(besides)
  const hits = (await trial.simulator.hitCounts()).reduce((sum, count) => sum + count, 0)
  return {
    told,
    hits,
    differences: differences.map(one => `next to an item that can never be read: ${one}`),
  }
}

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')
