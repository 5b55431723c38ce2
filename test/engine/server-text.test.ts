import { expect, test } from 'vitest'
import { RESOURCE_NAMES } from '../../src/declare/resource-names.ts'
import {
  type ScriptedAnswer,
  type ScriptedApi,
  startScriptedApi,
  v1Page,
  v2Page,
} from '../support/scripted-api.ts'
import { message, startTrial, type Trial, uuid } from './trial-backfill.ts'

/** Words of users and parts of a key, as an error may quote them. */
const QUOTED = ['Trillian', 'trillian@example.com', 'layoffs', 'sk_live', 'wxyz', 'ZQ4711XJ']

const SENTENCE = `Meeting “${QUOTED.join(' ')}” of ${QUOTED.join(' ')} cannot be read with key sk_live…wxyz`

const LISTS: Readonly<Record<string, ScriptedAnswer>> = {
  '/v1/collections': v1Page([{ id: 'c', name: 'Best' }]),
  '/v1/meetings': v1Page([{ meeting_id: 'x' }]),
  '/v1/playbooks': v1Page([{ id: 'p' }]),
  '/v2/messages': v2Page([message(2)]),
  '/v2/objects': { body: { data: [{ name: 'deal' }] } },
}

const OTHERS = [
  '/v1/members',
  '/v1/teams',
  '/v1/teams/{id}',
  '/v1/collections/{id}',
  '/v1/public-api-access-logs',
  '/v1/meetings/{id}',
  '/v1/meetings/{id}/transcript',
  '/v1/meetings/{id}/playbook-results',
  '/v1/playbooks/{id}',
  '/v1/playbooks/{id}/execution-setting',
  '/v1/bot-definition',
  '/v1/settings/integrations',
  '/v2/activities',
  '/v2/activities/{id}',
  '/v2/messages/{id}',
  '/v2/objects/{object}',
  '/v2/objects/{object}/records',
  '/v2/objects/{object}/records/{id}',
]

const BODIES: readonly unknown[] = [
  { statusCode: 0, message: SENTENCE, error: SENTENCE },
  { error: { code: 'trillian_layoffs_zq4711xj', message: SENTENCE, request_id: uuid(4711) } },
  { message: [SENTENCE, `limit: ${SENTENCE}`] },
  { [SENTENCE]: SENTENCE },
]

function failOn(api: ScriptedApi, routes: readonly string[], status: number): void {
  for (const [index, route] of routes.entries()) {
    api.on(route, () => ({ status, body: BODIES[index % BODIES.length] }))
  }
}

/** Everything that operators read of a run, except the items of `sync_rejects`, which are stored unchanged. */
function toldOf(trial: Trial): string {
  const tables = trial.column(
    "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name LIKE 'sync\\_%' ESCAPE '\\'",
  )
  const rows = tables
    .flatMap(table => trial.all(`SELECT * FROM "${table}"`))
    .map(({ item: _, ...row }) => row)
  return trial.logged() + JSON.stringify(rows)
}

test.for([400, 401, 403, 404, 409, 422, 451, 500, 503])(
  'no text of an error body of status %i reaches the log, the sync tables or an error, on any route',
  async status => {
    const api = await startScriptedApi()
    const trial = await startTrial(api)
    for (const [route, answer] of Object.entries(LISTS)) api.on(route, () => answer)
    failOn(api, OTHERS, status)
    const ends = [await endOf(trial)]
    failOn(api, [...Object.keys(LISTS), ...OTHERS], status)
    ends.push(await endOf(trial))

    const told = toldOf(trial) + ends.join('\n')
    expect(QUOTED.filter(word => told.includes(word))).toEqual([])
    expect(told.includes('Meeting … of … cannot be read with key …'), 'the known words are told').toBe(true)
  },
)

/** How a run of all resources ended, in the command's words. */
async function endOf(trial: Trial): Promise<string> {
  try {
    return JSON.stringify(await trial.run(RESOURCE_NAMES, { giveUpMs: 500 }))
  } catch (error) {
    return error instanceof Error ? `${error.message} ${JSON.stringify(error)}` : String(error)
  }
}
