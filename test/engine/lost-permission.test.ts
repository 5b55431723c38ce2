import { expect, test } from 'vitest'
import { numberedPage, refused, startScriptedApi } from '../support/scripted-api.ts'
import { outcomeOf, startTrial } from './trial-backfill.ts'

const MEMBERS = [{ id: 'm', name: 'n', email: null, role: null }]

test.for([
  [403, 'Grant the key this permission again; stored rows are kept.'],
  [404, 'Check that the workspace still offers this and that the key may read it; stored rows are kept.'],
] as const)(
  'a list that was read before and answers %d keeps its rows, and the reason says once what to do',
  async ([status, remedy]) => {
    const api = await startScriptedApi()
    api.on('/v1/teams', () => numberedPage([]))
    api.on('/v1/members', () => numberedPage(MEMBERS))
    const trial = await startTrial(api)
    await trial.run(['members', 'teams'])
    api.on('/v1/members', () => refused(status))
    const result = await trial.run(['members', 'teams'])
    expect(outcomeOf(result, 'members')).toBe('failed')
    const [reason] = trial.column("SELECT reason FROM sync_status WHERE resource = 'members'")
    expect(String(reason).split(`. ${remedy}`)).toEqual([
      expect.stringMatching(
        new RegExp(`^GET /v1/members: The API answers ${status} for data that it returned before: `),
      ),
      '',
    ])
    expect(result.resources.find(({ resource }) => resource === 'members')?.reason).toBe(reason)
    expect(trial.column('SELECT count(*) FROM live_members')).toEqual([1])
  },
)

test('a list that was never read and answers 403 has lost nothing', async () => {
  const api = await startScriptedApi()
  api.on('/v1/teams', () => numberedPage([]))
  api.on('/v1/members', () => refused(403))
  const trial = await startTrial(api)
  await trial.run(['members', 'teams'])
  expect(trial.column("SELECT reason FROM sync_status WHERE resource = 'members'")).toEqual([
    expect.stringContaining('The API refused the request with 403'),
  ])
})
