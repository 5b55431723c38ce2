import type { Fault } from '../../src/simulator/faults/faults.ts'
import { routeTemplates } from '../../src/simulator/operations/routes.ts'
import type { TruthKind } from '../../src/simulator/world/truth.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { ODD_ANSWERS, shown, WRONG_ANSWERS } from '../daemon/lives/hostile-answers.ts'
import type { Trial } from '../support/trial.ts'
import { until } from '../support/until.ts'
import type { Draw } from './draw.ts'
import type { Mode } from './modes.ts'

/** A week becomes a second, so that the next runs can confirm a denial that needs days. */
const SOON = { PARLEY_SYNC_INTERVAL_SCALE: '0.000001', PARLEY_API_TIMEOUT_SECONDS: '3' }

/**
 * Something that cannot be read is retried after some seconds, longer than the other requests of a run take. With a
 * shorter backoff something would be due at every instant, and no run would end.
 */
const PUT_OFF = { PARLEY_SYNC_INTERVAL_SCALE: '0.0005', PARLEY_API_TIMEOUT_SECONDS: '3' }

/** Waits until every failed list may be read again. */
async function untilDue({ database }: Trial): Promise<void> {
  const db = openSqlite(database, { readonly: true })
  const latest = db.prepare('SELECT max(retry_at) FROM sync_segments').pluck().get()
  db.close()
  const dueAt = latest === null ? 0 : Date.parse(String(latest))
  await until(
    () => Math.ceil(Math.max(0, dueAt - Date.now()) / 1000),
    seconds => seconds === 0,
  )
}

/** Runs a backfill while the service is hostile, and three more when it works normally again. */
async function backfillWithFaults(trial: Trial, faults: readonly Fault[], told: string): Promise<string> {
  await trial.simulator.setFaults(faults)
  const { status } = await trial.backfill()
  const hits = await trial.simulator.hitCounts()
  await trial.simulator.setFaults([])
  const after: (number | null)[] = []
  for (let run = 0; run < 3; run++) {
    await untilDue(trial)
    after.push((await trial.backfill()).status)
  }
  return `${told}; hit ${hits.join(', ')} times; first ${status}; without exit ${after.join(', ')}`
}

/** Services that give wrong or old answers, or fail on single items. A backfill must cope with all of them. */
export const HOSTILE_MODES: Readonly<Record<string, Mode>> = {
  blips: {
    about: 'single wrong answers of every kind to a complete warehouse',
    env: SOON,
    play: async (trial, draw) => {
      await trial.backfill()
      const faults = routeTemplates().map(route => ({
        ...draw.pick(WRONG_ANSWERS),
        route,
        atMost: 1 + draw.below(2),
        afterRequests: draw.below(4),
      }))
      return backfillWithFaults(trial, faults, faults.map(shown).join(' '))
    },
  },
  lag: {
    about: 'some answers are those of a replica that lags, while the workspace changes',
    env: SOON,
    play: async (trial, draw) => {
      await trial.backfill()
      for (const kind of ['publish', 'edit', 'delete', 'hide', 'publishLate'] as const) {
        for (const resource of ['messages', 'activities', 'meetings', 'members', 'crm_records'] as const)
          await trial.simulator.change({ kind, resource, count: 1 + draw.below(2) })
      }
      const delayMs = 500 + draw.below(5_000)
      return backfillWithFaults(trial, [{ kind: 'lag', probability: 0.5, delayMs }], `lag of ${delayMs} ms`)
    },
  },
  stubborn: {
    about: 'every answer that has one item fails',
    env: PUT_OFF,
    play: async (trial, draw) => {
      if (draw.below(2) === 0) await trial.backfill()
      const fault = await stubbornItem(trial, draw)
      return backfillWithFaults(trial, [fault], shown(fault))
    },
  },
  large: {
    about: 'pages are too large unless fewer items are asked for',
    env: { ...SOON, PARLEY_API_MAX_RESPONSE_BYTES: '2MiB' },
    play: async (trial, draw) => {
      const bytesPerItem = 30_000 + draw.below(300_000)
      return backfillWithFaults(trial, [{ kind: 'bloat', bytesPerItem }], `${bytesPerItem} bytes an item`)
    },
  },
  odd: {
    about: 'strange answers: deep, half a surrogate pair, strings for items, no times, never twice the same',
    env: SOON,
    play: async (trial, draw) => {
      if (draw.below(2) === 0) await trial.backfill()
      const fault = draw.pick(ODD_ANSWERS)
      return backfillWithFaults(trial, [fault], shown(fault))
    },
  },
  halved: {
    about: 'half of everything is really deleted',
    env: SOON,
    options: () => ({ messages: 200, members: 60, meetings: 60, companies: 50 }),
    play: async trial => {
      await trial.backfill()
      const told: string[] = []
      for (const resource of ['messages', 'activities', 'meetings', 'members', 'crm_records'] as const) {
        const object = 'company'
        const count =
          resource === 'crm_records' ? 25 : Math.floor((await trial.simulator.truth(resource)).length / 2)
        const { ids } = await trial.simulator.change({ kind: 'delete', resource, object, count })
        told.push(`${ids.length} ${resource}`)
      }
      return backfillWithFaults(trial, [], told.join(', '))
    },
  },
}

async function stubbornItem(trial: Trial, draw: Draw): Promise<Fault> {
  const [kind, field] = draw.pick<readonly [TruthKind, string]>([
    ['messages', 'id'],
    ['meetings', 'meeting_id'],
    ['crm_records', 'id'],
    ['collections', 'id'],
  ])
  const [first = {}, ...rest] = await trial.simulator.truth(kind)
  const id = String(draw.pick([first, ...rest])[field])
  const how = draw.pick([{ requestHas: id }, { answerHas: id }])
  return { kind: 'status', status: draw.pick([403, 404, 410, 500]), ...how }
}
