import { describe, expect, test } from 'vitest'
import { resourceNamed } from '../../src/catalog/catalog.ts'
import { recordOutcome } from '../../src/engine/run/round-end.ts'
import {
  refused,
  type ScriptedAnswer,
  type ScriptedApi,
  startScriptedApi,
  v1Page,
  v2Page,
} from '../support/scripted-api.ts'
import { outcomeOf, startTrial, stateOf, uuid } from './trial-backfill.ts'
import { startTimed } from './trial-timed.ts'

/** A failing read in a round neither hides the other results of the round nor keeps it from ending. */

describe('a backfill with a failing read', () => {
  test.each([410, 400, 500])(
    'the backfill deletes what its lists and other reads deny (%i)',
    async status => {
      const api = await startScriptedApi()
      let listed = ['bad', 'gone', 'kept']
      api.on('/v1/meetings', () => v1Page(listed.map(id => ({ meeting_id: id }))))
      let answer: ScriptedAnswer | undefined
      api.on('/v1/meetings/{id}', ({ params: [id = ''] }) => {
        if (id === 'bad' && answer) return answer
        return listed.includes(id) ? { body: { data: { meeting_id: id } } } : refused(404)
      })
      const trial = await startTrial(api)
      expect((await trial.run(['meetings'])).complete).toBe(true)
      listed = ['bad', 'kept']
      answer = refused(status)
      expect(outcomeOf(await trial.run(['meetings']), 'meetings')).toBe('failed')
      expect(trial.column('SELECT id FROM live_meetings ORDER BY 1')).toEqual(['bad', 'kept'])
      expect(stateOf(trial, 'meetings')).toBe('failing')
    },
  )

  test.each([500, 403, 404])(
    'the backfill deletes records of the objects that it can read (%i)',
    async status => {
      const api = await startScriptedApi()
      let deals = [1, 2]
      let answer = records('company', [3])
      scriptObjects(api, object => {
        if (object === 'contact') return v2Page([])
        return object === 'company' ? answer : records(object, deals)
      })
      const trial = await startTrial(api)
      const resources = ['crm_objects', 'crm_records'] as const
      expect((await trial.run(resources)).complete).toBe(true)
      deals = [1]
      answer = refused(status)
      expect(outcomeOf(await trial.run(resources), 'crm_records')).toBe('failed')
      expect(trial.column('SELECT id FROM live_crm_records ORDER BY 1')).toEqual([1, 3].map(uuid))
    },
  )

  test('the backfill deletes nothing from a list that was not read to its end', async () => {
    const api = await startScriptedApi()
    const listed = ['a', 'b', 'c']
    let answer: ScriptedAnswer = v1Page(listed.map(id => ({ id })))
    api.on('/v1/collections', () => answer)
    api.on('/v1/collections/{id}', () => refused(404))
    const trial = await startTrial(api)
    expect((await trial.run(['collections'])).complete).toBe(true)
    answer = refused(500)
    expect(outcomeOf(await trial.run(['collections']), 'collections')).toBe('failed')
    expect(trial.column('SELECT id FROM live_collections ORDER BY 1')).toEqual(listed)
  })
})

test.each([500, 403, 404])(
  'a round of the daemon ends without a scope that answers %i, and keeps the rejects of that scope',
  async status => {
    const api = await startScriptedApi()
    const keyless = { fields: {} }
    const answers: Record<string, ScriptedAnswer> = {
      deal: v2Page([{ id: uuid(1), fields: {} }, keyless]),
      company: v2Page([{ id: uuid(2), fields: {} }, keyless]),
    }
    scriptObjects(api, object => answers[object] ?? v2Page([]))
    const trial = await startTrial(api)
    const resources = ['crm_objects', 'crm_records'] as const
    const timed = await startTimed(api, trial, resources)
    const run = async () => {
      await timed.drain()
      await trial.store.transaction(() => {
        for (const name of resources) recordOutcome(timed.context, resourceNamed(name), true)
      })
      for (const name of resources) timed.context.runs.begin(name)
    }
    const open = "SELECT count(*) FROM sync_rejects WHERE resource = 'crm_records' AND resolved_at IS NULL"
    await run()
    expect(trial.column(open)).toEqual([2])
    answers['deal'] = records('deal', [1])
    answers['company'] = refused(status)
    const round = timed.context.rounds.number('crm_records')
    trial.passTime(86_400_000)
    await run()
    expect(timed.context.rounds.number('crm_records')).toBe(round + 1)
    expect(trial.column(open)).toEqual([1])
    expect(stateOf(trial, 'crm_records')).toBe('failing')
  },
)

function scriptObjects(api: ScriptedApi, answer: (object: string) => ScriptedAnswer): void {
  const names = ['deal', 'company', 'contact']
  api.on('/v2/objects', () => ({ body: { data: names.map(name => ({ name })) } }))
  api.on('/v2/objects/{object}', ({ params: [name] }) => ({ body: { name, fields: [] } }))
  api.on('/v2/objects/{object}/records', ({ params: [object = ''], query: { ids } }) => {
    const page = answer(object)
    return ids !== undefined && page.status === undefined ? shownIn(page, ids.split(',')) : page
  })
}

interface Shown {
  data: { id: string }[]
}

const shownIn = ({ body }: ScriptedAnswer, ids: readonly string[]): ScriptedAnswer =>
  v2Page((body as Shown).data.filter(({ id }) => ids.includes(id)))

const records = (object: string, numbers: readonly number[]): ScriptedAnswer =>
  v2Page(numbers.map(number => ({ id: uuid(number), object, fields: {} })))
