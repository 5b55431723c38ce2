import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { emptyFolder, parley } from './parley.ts'
import { backfilled } from './workspace.ts'

const closers: (() => Promise<void>)[] = []
const untilTheEnd = { onTestFinished: (close: () => Promise<void>) => void closers.push(close) }

/** A warehouse that a backfill has just filled. */
async function filled(env: Record<string, string> = {}) {
  const place = await backfilled(untilTheEnd, { env })
  const db = openSqlite(place.file, { readonly: true })
  untilTheEnd.onTestFinished(async () => {
    db.close()
  })
  const all = (sql: string) => db.prepare(sql).all() as Record<string, string>[]
  return {
    ...place,
    all,
    one: (sql: string) => all(sql)[0] ?? {},
    search: (...args: string[]) => parley(['search', ...args], { cwd: place.cwd }),
  }
}

let warehouse: Awaited<ReturnType<typeof filled>>

beforeAll(async () => {
  warehouse = await filled()
})

afterAll(async () => {
  for (const close of closers) await close()
})

const ENTRY = `SELECT e.*, m.title, m.url, m.start_time FROM live_transcript_entries e
  JOIN live_meetings m ON m.id = e.meeting_id WHERE length(e.text) > 10 ORDER BY m.start_time DESC LIMIT 1`

test.concurrent('a transcript hit has its time, its offset in the meeting, the speaker and a link', async () => {
  const { search, one } = warehouse
  const {
    text = '',
    title,
    url,
    speaker_name: who,
    start_time: at = '',
    elapsed_seconds: offset,
  } = one(ENTRY)
  const { status, stdout, stderr } = await search(`"${text}"`, '--kind', 'transcript', '--limit', '1')
  const seconds = Number(offset)
  const place = new Date(seconds * 1000).toISOString().slice(12, 19)
  expect({ status, stdout, stderr }).toEqual({
    status: EXIT_STATUS.done,
    stdout: `${at.slice(0, 10)} ${at.slice(11, 16)}Z  transcript  ${place}  ${who} · ${title}\n  «${text}»\n  ${url}\n`,
    stderr:
      'The newest 1 hit. There may be more: raise --limit, or narrow the search with --from, --to and --kind.\n',
  })
})

test.concurrent('--json has every hit with its keys and the positions of the words in the snippet', async () => {
  const { search, one } = warehouse
  const { header_message_id: key, subject = '' } = one(
    'SELECT * FROM live_messages WHERE length(subject) > 8 ORDER BY received_at DESC LIMIT 1',
  )
  const { stdout } = await search(`"${subject}"`, '--json', '--kind', 'message', '--limit', '100')
  const { terms, unindexed, hits } = JSON.parse(stdout)
  expect({ terms, unindexed }).toEqual({ terms: [subject], unindexed: 0 })
  const hit = hits.find((one: { header_message_id: string }) => one.header_message_id === key)
  expect(hit).toMatchObject({ kind: 'message', title: subject, meeting_id: null, offset: null, url: null })
  const [[begin, end]] = hit.marks
  expect(hit.snippet.slice(begin, end).toLowerCase()).toBe(subject.toLowerCase())
})

test.concurrent('--sql prints SQL with which sqlite3 finds the same', async () => {
  const { search, one, file } = warehouse
  const { text = '' } = one(ENTRY)
  const word = text.slice(0, 6)
  const [{ stdout: sql }, { stdout: json }] = await Promise.all([
    search(word, '--sql'),
    search(word, '--json'),
  ])
  expect(sql).toContain('MATCH')
  const rows = JSON.parse(
    execFileSync('sqlite3', ['-readonly', '-json', file], { input: sql, encoding: 'utf8' }),
  )
  const keys = (from: { kind: string; header_message_id: string; meeting_id: string; position: number }[]) =>
    from.map(row => [row.kind, row.header_message_id ?? row.meeting_id, row.position])
  expect(keys(rows)).toEqual(keys(JSON.parse(json).hits))
  expect(rows.length).toBeGreaterThan(0)
})

test.concurrent('--from and --to take days, both included, or instants', async () => {
  const { search } = warehouse
  const asked = async (...args: string[]) => {
    const { stdout } = await search('e', '--kind', 'message', '--limit', '1000', '--json', ...args)
    return JSON.parse(stdout).hits.map(({ at }: { at: string }) => at)
  }
  const everything: string[] = await asked()
  const day = everything[Math.floor(everything.length / 2)]?.slice(0, 10) ?? ''
  const ofDay = everything.filter(at => at.startsWith(day))
  expect(ofDay.length).toBeGreaterThan(0)
  expect(await asked('--from', day, '--to', day)).toEqual(ofDay)
  const newest = everything[0] ?? ''
  expect(await asked('--from', newest)).toEqual(everything.filter(at => at === newest))
  expect(await asked('--to', newest)).toEqual(everything.filter(at => at < newest))
  expect(await asked('--from', day, '--to', '9999-12-31')).toEqual(everything.filter(at => at >= day))
})

test.concurrent('a search without indices finds the same and warns that it may take longer', async () => {
  const { search, one, all, cwd, env } = await filled({ PARLEY_SEARCH_ENABLED: 'false' })
  expect(all("SELECT name FROM sqlite_master WHERE name LIKE 'search%'")).toEqual([])
  const word = (one(ENTRY)['text'] ?? '').slice(0, 6)
  const slow = await search(word)
  expect(slow.stderr).toMatch(/^parley: There is no full-text index, so this search may have taken longer/)
  await parley(['backfill'], { cwd, env })
  const quick = await search(word)
  expect(quick.stdout).toBe(slow.stdout)
  expect(quick.stderr).not.toContain('parley:')
  await parley(['backfill', '--search', 'false'], { cwd, env })
  expect(all("SELECT name FROM sqlite_master WHERE name LIKE 'search%'")).toEqual([])
})

test.concurrent('a backfill whose indices fail still prints its summary', async () => {
  const { cwd, env, file } = await filled({ PARLEY_SEARCH_ENABLED: 'false' })
  const db = openSqlite(file)
  db.exec('CREATE TABLE search_messages_data (mine TEXT)')
  db.close()
  const { status, stdout, stderr } = await parley(['backfill', '--json'], { cwd, env })
  expect(status).toBe(EXIT_STATUS.fault)
  expect(stderr).toContain('search_messages_data')
  expect(JSON.parse(stdout)).toMatchObject({ complete: true })
})

test.concurrent('a search without hits says so and ends with 0', async () => {
  const { search } = warehouse
  expect(await search('zzqzzq', '%', '"; DROP TABLE messages')).toEqual({
    status: EXIT_STATUS.done,
    stdout: '',
    stderr: 'No hits.\n',
  })
})

test.concurrent.for([
  ['There is no word to search for', ['   '], 'Give one or more words.'],
  ['There is no word to search for', ['""'], 'Give one or more words.'],
  [
    '--kind: unknown kind "mail"',
    ['x', '--kind', 'mail'],
    'The kinds are message, transcript, meeting, summary, action-item, answer.',
  ],
  [
    '--kind: unknown kind "meetings"',
    ['x', '--kind', 'meetings'],
    'Did you mean meeting? The kinds are message, transcript, meeting, summary, action-item, answer.',
  ],
  [
    '--from is "yesterday": expected a UTC day such as 2025-01-31, or a full RFC 3339 instant such as 2025-01-31T08:00:00Z',
    ['x', '--from', 'yesterday'],
    'Give a day or an instant.',
  ],
  [
    '--limit is "0": expected a whole number from 1 to 10000',
    ['x', '--limit', '0'],
    'The default is 20. For more than 10000, run the SQL that --sql prints with a larger LIMIT.',
  ],
  [
    '--from "2026-03-05" is not before --to "2026-03-04"',
    ['x', '--from', '2026-03-05', '--to', '2026-03-04'],
    'Choose a --to after --from. A day given with --to is included, an instant is not.',
  ],
  [
    "option '--sql' cannot be used with option '--json'",
    ['x', '--sql', '--json'],
    'Run parley search --help for the usage.',
  ],
  [
    'The search is too long: 1 word, 1,001 characters',
    ['x'.repeat(1001)],
    'Use at most 30 words and 1000 characters.',
  ],
] as const)('%s, which is wrong usage', async ([message, args, hint], { expect }) => {
  expect(await parley(['search', ...args])).toEqual({
    status: EXIT_STATUS.usage,
    stdout: '',
    stderr: `parley: ${message}\nhint: ${hint}\n`,
  })
})

test.concurrent('a search without a warehouse reports that there is none', async () => {
  const cwd = emptyFolder()
  const { status, stderr } = await parley(['search', 'x'], { cwd })
  expect(status).toBe(EXIT_STATUS.databaseUnavailable)
  expect(stderr).toMatch(/^parley: There is no warehouse at .*parley\.db yet\n/)
  writeFileSync(join(cwd, 'parley.db'), '')
  expect(await parley(['search', 'x'], { cwd })).toMatchObject({ status, stderr })
})
