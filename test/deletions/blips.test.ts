import { expect, test } from 'vitest'
import { CATALOG } from '../../src/catalog/catalog.ts'
import { CONFIRM_AFTER_MS } from '../../src/engine/deletions/deletion-states.ts'
import { message, minutesBack, startTrial, type Trial, uuid } from '../engine/trial-backfill.ts'
import { startTimed } from '../engine/trial-timed.ts'
import { share } from '../support/effort.ts'
import {
  numberedPage,
  refused,
  type ScriptedAnswer,
  type ScriptedApi,
  startScriptedApi,
  v1Page,
  v2Page,
} from '../support/scripted-api.ts'

const RESOURCES = CATALOG.map(({ name }) => name)
const DAY = 86_400_000

const [ACTIVITY, DEAL, COMPANY] = [uuid(1), uuid(3), uuid(4)]
const record = (object: string, id: string) => ({ id, object, visibility: 'workspace', fields: { name: id } })

const ACTIVITY_ROW = {
  id: ACTIVITY,
  type: 'call',
  source_type: 'OBJECT_CHANGE_EVENT',
  source_id: 'e',
  occurred_at: minutesBack(1),
  created_via: null,
  actor: null,
  links: [],
}

/** One thing of each kind, so that any answer that is believed too early takes something away. */
const WORLD: Readonly<Record<string, ScriptedAnswer>> = {
  '/v1/members': numberedPage([{ id: 'm', name: 'Aiko', email: null, role: null }]),
  '/v1/teams': numberedPage([{ id: 't', name: 'East', member_ids: ['m'] }]),
  '/v1/teams/{id}': { body: { data: { id: 't', name: 'East', member_ids: ['m'] } } },
  '/v1/collections': v1Page([{ id: 'c', name: 'Best' }]),
  '/v1/collections/{id}': { body: { data: { id: 'c', name: 'Best' } } },
  '/v1/meetings': v1Page([{ meeting_id: 'x' }]),
  '/v1/meetings/{id}': { body: { data: { meeting_id: 'x', title: 'a', overview_status: 'COMPLETED' } } },
  '/v1/meetings/{id}/transcript': { body: { data: [{ text: 'words' }] } },
  '/v1/meetings/{id}/playbook-results': { body: { data: [{ id: 'r', playbook_id: 'p' }] } },
  '/v1/playbooks': v1Page([{ id: 'p' }]),
  '/v1/playbooks/{id}': { body: { data: { id: 'p', name: 'Discovery', active: true } } },
  '/v1/playbooks/{id}/execution-setting': { body: { mode: 'AUTO' } },
  '/v1/bot-definition': { body: { data: { name: 'Bot', transcription_hints: [{ hint: 'parley' }] } } },
  '/v1/settings/integrations': { body: { data: { crm: 'one' } } },
  '/v2/activities': v2Page([ACTIVITY_ROW]),
  '/v2/activities/{id}': { body: ACTIVITY_ROW },
  '/v2/messages': v2Page([message(2)]),
  '/v2/messages/{id}': { body: { ...message(2), text: 'Dear Sam' } },
  '/v2/objects': { body: { data: [{ name: 'deal' }, { name: 'company' }] } },
}

/** Answers that may come once, from a proxy, a replica that lags or a service that restarts. */
const BLIPS: Readonly<Record<string, (route: string) => ScriptedAnswer>> = {
  'a 404': () => refused(404),
  'a 403': () => refused(403),
  'an empty list': emptyList,
  'null data': () => ({ body: { data: null } }),
}

function emptyList(route: string): ScriptedAnswer {
  if (route.startsWith('/v1/members') || route.startsWith('/v1/teams')) return numberedPage([])
  if (route.startsWith('/v1/')) return v1Page([])
  return v2Page([])
}

/** The shape of these documents is not stated, so any object is one. */
const isDocument = (route: string) => route.endsWith('execution-setting') || route.endsWith('integrations')

interface Blip {
  route: string
  answer: ScriptedAnswer
}

async function startWorld(): Promise<{ api: ScriptedApi; put(blip: Blip): void }> {
  const api = await startScriptedApi()
  let pending: Blip | undefined
  const answer = (route: string, usual: () => ScriptedAnswer): ScriptedAnswer => {
    if (pending?.route !== route) return usual()
    const once = pending.answer
    pending = undefined
    return once
  }
  for (const [route, usual] of Object.entries(WORLD)) api.on(route, () => answer(route, () => usual))
  api.on('/v2/objects/{object}', ({ params: [name] }) =>
    answer('/v2/objects/{object}', () =>
      name === 'deal' || name === 'company' ? { body: { name, fields: [] } } : refused(404),
    ),
  )
  api.on('/v2/objects/{object}/records', ({ params: [object = ''], query }) =>
    answer(query['related_id'] === undefined ? '/v2/objects/{object}/records' : 'related records', () => {
      if (object === 'deal') return v2Page([record('deal', DEAL)])
      return object === 'company' ? v2Page([record('company', COMPANY)]) : refused(404)
    }),
  )
  return {
    api,
    put: blip => {
      pending = blip
    },
  }
}

/** What analysts see: every row of every live view. */
function seen(trial: Trial): Record<string, unknown> {
  const views = trial.column(
    "SELECT name FROM sqlite_master WHERE type = 'view' AND name LIKE 'live\\_%' ESCAPE '\\'",
  )
  return Object.fromEntries(views.map(view => [view, trial.all(`SELECT * FROM "${view}"`)]))
}

const changedViews = (before: Record<string, unknown>, after: Record<string, unknown>): string[] =>
  Object.keys(before).filter(view => JSON.stringify(after[view]) !== JSON.stringify(before[view]))

const ROUTES = [
  ...Object.keys(WORLD),
  '/v2/objects/{object}',
  '/v2/objects/{object}/records',
  'related records',
]

/** Every wrong answer of every route. */
const WRONG = Object.entries(BLIPS).flatMap(([what, answerFor]) =>
  ROUTES.filter(route => answerFor !== emptyList || !isDocument(route)).map(route => ({
    route,
    answer: answerFor(route),
    name: `${what} for ${route}`,
  })),
)

test('one wrong answer to any request of a backfill changes nothing that analysts see', async () => {
  const { api, put } = await startWorld()
  const trial = await startTrial(api)
  await trial.run(RESOURCES)
  const before = seen(trial)
  const changed: string[] = []
  for (const { name, ...wrong } of share(WRONG)) {
    trial.passTime(8 * DAY)
    put(wrong)
    await trial.run(RESOURCES)
    changed.push(...changedViews(before, seen(trial)).map(view => `${name}: ${view}`))
  }
  expect(changed).toEqual([])
  expect(trial.column('SELECT count(*) FROM live_crm_record_links')).toEqual([1])
})

test('one wrong answer to any request of a daemon changes nothing that analysts see', async () => {
  const { api, put } = await startWorld()
  const trial = await startTrial(api)
  await trial.run(RESOURCES)
  const before = seen(trial)
  const timed = await startTimed(api, trial, RESOURCES)
  const goOn = async (ms: number) => {
    timed.passTime(ms)
    await timed.drain()
    for (const resource of RESOURCES) await timed.settle(resource)
  }
  const changed: string[] = []
  for (const { name, ...wrong } of share(WRONG)) {
    put(wrong)
    await goOn(8 * DAY)
    await goOn(CONFIRM_AFTER_MS)
    await goOn(DAY / 24)
    changed.push(...changedViews(before, seen(trial)).map(view => `${name}: ${view}`))
  }
  expect(changed).toEqual([])
  expect(trial.column('SELECT count(*) FROM sync_suspicions')).toEqual([0])
})
