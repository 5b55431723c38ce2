import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { parley } from './parley.ts'
import { type Place, placeFor, type Test, workspace } from './workspace.ts'

const OTHER = 'other-workspace'

/** A database of one workspace, and the settings of another one, whose API counts its requests. */
async function mistaken(context: Test) {
  const [mine, others] = await Promise.all([workspace(context), workspace(context, { workspaceId: OTHER })])
  const place = placeFor(mine)
  const { status } = await parley(['backfill', '--only', 'teams,members'], place)
  expect(status).toBe(EXIT_STATUS.done)
  const env = { ...place.env, PARLEY_BASE_URL: others.url, PARLEY_WORKSPACE_ID: OTHER }
  return { place, mine, others, wrong: { ...place, env } }
}

test.concurrent('the database of another workspace is refused with 78 before any request, and not changed', async context => {
  const { place, mine, others, wrong } = await mistaken(context)
  const before = readFileSync(place.file)
  for (const command of [['backfill'], ['backfill', '--plan'], ['daemon']]) {
    const { status, stdout, stderr } = await parley(command, wrong)
    expect({ command, status, stdout }).toEqual({ command, status: EXIT_STATUS.settings, stdout: '' })
    expect(stderr).toContain(
      `parley.db holds workspace ${mine.workspaceId}, but the settings name workspace ${OTHER}`,
    )
    expect(stderr).toContain(
      'hint: Check api.workspace_id, or set database.path to another file: each workspace needs its own.',
    )
  }
  expect(others.requests.total()).toBe(0)
  expect(readFileSync(place.file).equals(before)).toBe(true)
})

test.concurrent('doctor reports that the database belongs to another workspace', async context => {
  const { mine, wrong } = await mistaken(context)
  const { status, stdout } = await parley(['doctor'], wrong)
  expect(status).toBe(EXIT_STATUS.settings)
  expect(stdout).toMatch(
    new RegExp(`WRONG +workspace of the database: .* holds workspace ${mine.workspaceId}, but`),
  )
})

test.concurrent('status and --check report it, unless the settings name no workspace', async context => {
  const { place, mine, wrong } = await mistaken(context)
  const problem = new RegExp(
    `Needs you: A daemon that starts with these settings ends at once( \\(and 1 more problem\\))?\\. .*/parley\\.db holds workspace ${mine.workspaceId}, but the settings name workspace ${OTHER}\\. Check api\\.workspace_id, or set`,
  )
  const [plain, check] = [await parley(['status'], wrong), await parley(['status', '--check'], wrong)]
  expect([plain.status, check.status]).toEqual([EXIT_STATUS.done, 2])
  expect(plain.stdout.split('\n')[0]).toMatch(problem)
  expect(check.stdout).toMatch(problem)
  const { PARLEY_WORKSPACE_ID: _, ...unnamed } = place.env
  for (const env of [place.env, unnamed])
    expect((await parley(['status'], { ...place, env })).stdout).not.toContain('these settings')
})

test.concurrent('a workspace that was given another id is adopted when the operator asks for it', async context => {
  const { place, wrong } = await mistaken(context)
  const { status } = await parley(['backfill', '--only', 'teams', '--workspace-renamed'], wrong)
  expect(status).toBe(EXIT_STATUS.done)
  expect((await parley(['backfill', '--only', 'teams'], wrong)).status).toBe(EXIT_STATUS.done)
  expect((await parley(['backfill', '--only', 'teams'], place)).status).toBe(EXIT_STATUS.settings)
})

test.concurrent('the same workspace at another address is a single warning', async context => {
  const [first, second] = await Promise.all([workspace(context), workspace(context)])
  const place = placeFor(first)
  const moved = { ...place, env: { ...place.env, PARLEY_BASE_URL: second.url } }
  const warned = async (where: Place) => {
    const { status, stderr } = await parley(['backfill', '--only', 'teams'], where)
    expect(status).toBe(EXIT_STATUS.done)
    return stderr.includes('The database was last filled from another address')
  }
  expect([await warned(place), await warned(moved), await warned(moved)]).toEqual([false, true, false])
})

test.concurrent('a first run with a wrong workspace id leaves a database that the right one may fill', async context => {
  const simulator = await workspace(context)
  const place = placeFor(simulator)
  const typo = { ...place, env: { ...place.env, PARLEY_WORKSPACE_ID: 'typo' } }
  expect((await parley(['backfill', '--only', 'teams'], typo)).status).toBe(EXIT_STATUS.refused)
  expect((await parley(['backfill', '--only', 'teams'], place)).status).toBe(EXIT_STATUS.done)
})

test.concurrent('status, an export and a snapshot name the workspace of their data', async context => {
  const { place, mine } = await mistaken(context)
  const held = { id: mine.workspaceId, base_url: mine.url }
  const status = await parley(['status', '--json'], place)
  expect(JSON.parse(status.stdout).workspace).toEqual(held)
  expect((await parley(['status'], place)).stdout).toContain(
    `Workspace: ${held.id}, read from ${held.base_url}.`,
  )
  await parley(['export', 'parquet', 'lake'], place)
  expect(JSON.parse(readFileSync(join(place.cwd, 'lake', 'manifest.json'), 'utf8')).workspace).toEqual(held)
  const snapshot = await parley(['snapshot', 'copy.db', '--json'], place)
  expect(JSON.parse(snapshot.stdout).workspace).toEqual(held)
})
