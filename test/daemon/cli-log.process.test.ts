import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import type { Simulator } from '../../src/simulator/server.ts'
import { parley } from '../cli/parley.ts'
import { placeFor, workspace } from '../cli/workspace.ts'
import { until } from '../support/until.ts'
import { column, loaded, startDaemon } from './cli-daemon.ts'

const KEY = 'key-that-nobody-may-see'
const NUDGE_SECRET = 'secret-that-nobody-may-see'

/** Texts, subjects, titles and names of people, except the shortest, which may occur anywhere. */
function wordsOfPeople({ world }: Simulator): string[] {
  const texts = [...world.truth().items('messages')].flatMap(({ text, subject }) => [text, subject])
  const titles = [...world.truth().items('meetings')].flatMap(({ title, meeting_owner }) => [
    title,
    meeting_owner,
  ])
  const turns = [...world.truth().items('transcripts')].flatMap(({ entries }) => entries)
  const members = [...world.truth().items('members')].flatMap(({ name, email }) => [name, email])
  return [texts, titles, turns, members].flatMap(stringsIn).filter(({ length }) => length > 8)
}

function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (value === null || typeof value !== 'object') return []
  return Object.values(value).flatMap(stringsIn)
}

test('the log at level trace contains no secret and no text of a person', async context => {
  const simulator = await workspace(context, {
    apiKey: KEY,
    faults: [
      { kind: 'status', status: 500, probability: 0.05 },
      { kind: 'truncate', probability: 0.05 },
      { kind: 'wrong-type', probability: 0.05 },
    ],
  })
  const place = placeFor(simulator)
  const daemon = startDaemon(context, place, {
    PARLEY_LOG_LEVEL: 'trace',
    PARLEY_HTTP_NUDGE_SECRET: NUDGE_SECRET,
  })
  await loaded(place.file)
  const words = wordsOfPeople(simulator)
  const post = (path: string, body: string) =>
    daemon.ask(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  await post(`/nudge/${NUDGE_SECRET}`, JSON.stringify({ type: 'meeting.completed.beta', note: words[0] }))
  await post(`/nudge/${NUDGE_SECRET}`, `{"broken": "${words[1]}`)
  await post('/nudge/a-guess-of-a-stranger', '{}')
  simulator.setApiKey('another')
  await daemon.says(({ msg }) => msg === 'The daemon waits and tries again')
  daemon.signal('SIGTERM')
  const { stderr } = await daemon.ended

  expect(words.length).toBeGreaterThan(100)
  const stored = column(place.file, 'SELECT text FROM messages WHERE text IS NOT NULL') as string[]
  expect(stored.some(text => words.includes(text))).toBe(true)
  const told = words.filter(
    word => stderr.includes(JSON.stringify(word).slice(1, -1)) || stderr.includes(word),
  )
  expect(told).toEqual([])
  for (const secret of [KEY, NUDGE_SECRET, 'a-guess-of-a-stranger']) expect(stderr).not.toContain(secret)
})

test('a key file that other users may read is a warning that does not show the key', async context => {
  const simulator = await workspace(context, { apiKey: KEY })
  const { cwd, file, env } = placeFor(simulator)
  const keyFile = join(cwd, 'key')
  writeFileSync(keyFile, KEY, { mode: 0o644 })
  const { PARLEY_API_KEY: _, ...others } = env
  const daemon = startDaemon(context, { cwd, env: { ...others, PARLEY_API_KEY_FILE: keyFile } })
  await loaded(file)
  expect(daemon.lines().some(({ msg }) => msg.includes('Warning') && msg.includes(keyFile))).toBe(true)
  expect(JSON.stringify(daemon.lines())).not.toContain(KEY)
})

test('the daemon logs its start and its end, and nothing for polls without changes', async context => {
  const simulator = await workspace(context)
  const place = placeFor(simulator)
  await parley(['backfill'], place)
  const daemon = startDaemon(context, place, { PARLEY_LOG_LEVEL: 'info' })
  const starts = await daemon.says(({ msg }) => msg === 'The daemon starts')
  const { address } = await daemon.says(({ msg }) => msg === 'The status server listens')
  expect(starts).toMatchObject({
    level: 'info',
    version: expect.stringMatching(/^\d/),
    pid: daemon.pid,
    path: place.file,
    workspace: simulator.workspaceId,
    base_url: simulator.url,
    resources: 'all',
    address,
  })
  const polls = () => simulator.requests.count('/v2/messages')
  const before = polls()
  expect(await until(polls, count => count >= before + 4)).toBeGreaterThanOrEqual(before + 4)
  const second = startDaemon(context, place)
  expect((await second.ended).status).toBe(EXIT_STATUS.unfinished)
  daemon.signal('SIGTERM')
  expect((await daemon.ended).status).toBe(EXIT_STATUS.done)
  const said = daemon.lines().filter(({ level }) => level === 'info')
  expect(said.map(({ msg }) => msg)).toEqual([
    'The status server listens',
    'The daemon starts',
    'The daemon ends',
  ])
  expect(said.at(-1)).toMatchObject({ exit_status: EXIT_STATUS.done, reason: 'Stopped by SIGTERM' })
  expect(second.lines().filter(({ msg }) => msg === 'The daemon ends')).toMatchObject([
    {
      level: 'error',
      exit_status: EXIT_STATUS.unfinished,
      reason: expect.stringContaining(`being written by process ${daemon.pid}`),
    },
  ])
})
