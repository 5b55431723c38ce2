import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { EXIT_STATUS } from '../../src/errors.ts'
import { emptyFolder, parley } from './parley.ts'
import { backfilled } from './workspace.ts'

const closers: (() => Promise<void>)[] = []
const untilTheEnd = { onTestFinished: (close: () => Promise<void>) => void closers.push(close) }

/** A warehouse that a backfill has just filled. */
async function filled(env: Record<string, string> = {}) {
  const place = await backfilled(untilTheEnd, { env })
  const db = new Database(place.file, { readonly: true })
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

test.concurrent('what was said is shown with its time, its place in the meeting, who said it, and a link', async () => {
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
      'The newest 1 hit; there may be more: --limit shows them, --from, --to and --kind narrow it down.\n',
  })
})

test.concurrent('--json has every hit with its keys, and where the words stand in the snippet', async () => {
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

test.concurrent('--sql prints what sqlite3 finds the same with', async () => {
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

test.concurrent('--from and --to are days, both included, or instants', async () => {
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
})

test.concurrent('without indices the same is found, and that it may take longer is said', async () => {
  const { search, one, all, cwd, env } = await filled({ PARLEY_SEARCH_ENABLED: 'false' })
  expect(all("SELECT name FROM sqlite_master WHERE name LIKE 'search%'")).toEqual([])
  const word = (one(ENTRY)['text'] ?? '').slice(0, 6)
  const slow = await search(word)
  expect(slow.stderr).toMatch(
    /^parley: There is no full-text index, so the texts themselves are looked through/,
  )
  await parley(['backfill'], { cwd, env })
  const quick = await search(word)
  expect(quick.stdout).toBe(slow.stdout)
  expect(quick.stderr).not.toContain('parley:')
  await parley(['backfill', '--search', 'false'], { cwd, env })
  expect(all("SELECT name FROM sqlite_master WHERE name LIKE 'search%'")).toEqual([])
})

test.concurrent('a backfill whose indices fail says what it has read all the same', async () => {
  const { cwd, env, file } = await filled({ PARLEY_SEARCH_ENABLED: 'false' })
  const db = new Database(file)
  db.exec('CREATE TABLE search_messages_data (mine TEXT)')
  db.close()
  const { status, stdout, stderr } = await parley(['backfill', '--json'], { cwd, env })
  expect(status).toBe(EXIT_STATUS.fault)
  expect(stderr).toContain('search_messages_data')
  expect(JSON.parse(stdout)).toMatchObject({ complete: true })
})

test.concurrent('nothing found is said, and is no failure', async () => {
  const { search } = warehouse
  expect(await search('zzqzzq', '%', '"; DROP TABLE messages')).toEqual({
    status: EXIT_STATUS.done,
    stdout: '',
    stderr: 'Nothing was found.\n',
  })
})

test.concurrent.for([
  ['There is nothing to look for', ['   '], 'Name a word, or several.'],
  ['There is nothing to look for', ['""'], 'Name a word, or several.'],
  [
    '--kind names nothing that can be searched: "mail"',
    ['x', '--kind', 'mail'],
    'There are message, transcript, meeting, summary, action-item, answer.',
  ],
  [
    '--kind names nothing that can be searched: "meetings"',
    ['x', '--kind', 'meetings'],
    'Did you mean meeting? There are message, transcript, meeting, summary, action-item, answer.',
  ],
  [
    '--from is "yesterday", expected a UTC day such as 2025-01-31, or a full RFC 3339 instant such as 2025-01-31T08:00:00Z',
    ['x', '--from', 'yesterday'],
    'Give a day or an instant.',
  ],
  [
    '--limit is "0", expected a whole number from 1 to 10000',
    ['x', '--limit', '0'],
    'Without it, 20 are shown; the SQL that --sql prints takes any number.',
  ],
  [
    'Nothing lies from "2026-03-05" to "2026-03-04"',
    ['x', '--from', '2026-03-05', '--to', '2026-03-04'],
    '--from is the earlier one; a day after --to is included, an instant is not.',
  ],
  [
    "option '--sql' cannot be used with option '--json'",
    ['x', '--sql', '--json'],
    'parley search --help says what there is',
  ],
  [
    'This is too much to look for at once: 1 word, 1,001 signs',
    ['x'.repeat(1001)],
    'At most 30 words and 1000 signs are taken.',
  ],
] as const)('%s, which is wrong usage', async ([message, args, hint], { expect }) => {
  expect(await parley(['search', ...args])).toEqual({
    status: EXIT_STATUS.usage,
    stdout: '',
    stderr: `parley: ${message}\nhint: ${hint}\n`,
  })
})

test.concurrent('where there is no warehouse, that is said', async () => {
  const cwd = emptyFolder()
  const { status, stderr } = await parley(['search', 'x'], { cwd })
  expect(status).toBe(EXIT_STATUS.databaseUnavailable)
  expect(stderr).toMatch(/^parley: There is no warehouse at .*parley\.db yet\n/)
  writeFileSync(join(cwd, 'parley.db'), '')
  expect(await parley(['search', 'x'], { cwd })).toMatchObject({ status, stderr })
})
