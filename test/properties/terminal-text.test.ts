import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ResourceError } from '../../src/base/errors.ts'
import { createLog } from '../../src/base/log.ts'
import {
  indentedJson,
  jsonLine,
  safeMultilineText,
  safeText,
  shellWord,
  singleLine,
} from '../../src/base/safe-text.ts'
import { quote } from '../../src/store/database/sql.ts'
import { META } from '../../src/store/sync/meta.ts'
import { indentedNote, table } from '../../src/terminal/table.ts'
import { cutToWidth, splitAtWidth, textWidth } from '../../src/terminal/text-width.ts'
import { foldText, wrapText } from '../../src/terminal/wording.ts'
import { emptyFolder, parley } from '../cli/parley.ts'
import { build, NOW, putMeeting, putMessage } from '../store/searchable.ts'
import { atomically, openAt, temporaryStore, withShortcuts } from '../store/temporary-store.ts'

const UNSAFE = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u

/** Words with sequences that terminals obey, in 7 and 8 bits. */
const hostile = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom(
        '\u001b]52;c;aGVsbG8=\u0007',
        '\u001b[2J',
        '\u009b31m',
        '\r',
        '\u007f',
        '\u202e',
        '\u2028',
      ),
    ),
    { minLength: 1, maxLength: 6 },
  )
  .map(parts => parts.join(''))

const WAYS: Readonly<Record<string, (text: string) => readonly string[]>> = {
  safeText: text => [safeText(text)],
  safeLines: text => safeMultilineText(text).split('\n'),
  singleLine: text => [singleLine(text)],
  jsonLine: text => jsonLine({ [text]: text }).split('\n'),
  indentedJson: text => indentedJson({ [text]: [text] }).split('\n'),
  'a wrapped sentence': text => wrapText(text, 40),
  'a folded sentence': text => foldText(text, 40),
  'a remark': text => indentedNote(text, text, 40),
  'a table': text => table([{ title: 'name', cell: (row: string) => row }], [text]),
  'an error': text => {
    const error = new ResourceError(text, { code: 'made-up', hint: text })
    return `${error.message}\n${error.hint}`.split('\n')
  },
}

test.for(Object.entries(WAYS))('%s contains no terminal control character', ([, way]) => {
  fc.assert(
    fc.property(hostile, text => {
      expect(way(text).filter(line => UNSAFE.test(line))).toEqual([])
    }),
  )
})

test('folded and cut text is never wider than asked, and splitting loses nothing', () => {
  fc.assert(
    fc.property(hostile, fc.integer({ min: 2, max: 50 }), (text, width) => {
      const wide = (line: string) => textWidth(line) > width
      expect(
        [...foldText(text, width), cutToWidth(text, width), ...splitAtWidth(text, width)].filter(wide),
      ).toEqual([])
      expect(splitAtWidth(text, width).join('')).toBe(text)
    }),
  )
})

test.each([
  ['plain text', 5, 'plai…'],
  ['plain', 5, 'plain'],
  ['漢字漢字', 4, '漢…'],
  ['漢字', 4, '漢字'],
  ['漢', 1, '…'],
  ['abc', 0, ''],
])('%s in %i columns is %j', (text, width, cut) => {
  expect(cutToWidth(text, width)).toBe(cut)
})

test('JSON has the same text with its characters escaped', () => {
  fc.assert(
    fc.property(hostile, text => {
      expect([jsonLine({ text }), indentedJson({ text })].map(json => JSON.parse(json))).toEqual([
        { text },
        { text },
      ])
    }),
  )
})

test('safe text is unchanged', () => {
  const text = 'Angebot «Größe» 見積書 👩‍💻 שלום'
  expect([safeText(text), safeMultilineText(`${text}\n${text}`), singleLine(text)]).toEqual([
    text,
    `${text}\n${text}`,
    text,
  ])
})

const NAME = 'offer\u001b]52;c;aGVsbG8=\u0007\u009b31m\u2028\u202e\u001bc'

test('the reason of a resource contains no terminal control character', () => {
  const store = temporaryStore()
  const at = '2026-03-04T05:06:07.000Z'
  store.state.failing('members', NAME, at)
  store.state.unavailable('teams', NAME, at)
  store.state.healthy('playbooks', NAME)
  const reasons = store.db.prepare('SELECT reason FROM sync_resources WHERE reason IS NOT NULL').pluck().all()
  expect(reasons).toHaveLength(3)
  expect(reasons.filter(reason => UNSAFE.test(String(reason)))).toEqual([])
})

test('log lines for people contain no terminal control character', async () => {
  const lines: string[] = []
  const log = await createLog({ level: 'info', pretty: true, stream: { write: line => lines.push(line) } })
  log.warn('Made up', { fields: NAME, reason: NAME, error: new Error(NAME) })
  const written = lines.join('')
  expect(written).toContain('offer')
  expect(written.split('\n').filter(line => UNSAFE.test(line))).toEqual([])
})

/** A warehouse in which every text of others is hostile. Returns its folder and the name of a typed table. */
async function hostileWarehouse(): Promise<{ cwd: string; table: string }> {
  const cwd = emptyFolder()
  const opened = openAt(join(cwd, 'parley.db'))
  const store = withShortcuts(opened, cwd, opened.path)
  atomically(store, () => {
    store.db
      .prepare('INSERT INTO crm_objects (name, label, _first_seen_at, _synced_at) VALUES (?, ?, ?, ?)')
      .run(NAME, NAME, NOW, NOW)
    store.db
      .prepare("INSERT INTO crm_fields (object, name, position, label, type) VALUES (?, ?, 0, ?, 'text')")
      .run(NAME, NAME, NAME)
    store.state.failing('members', NAME, '2026-03-04T05:06:07.000Z')
    store.state.setMeta(META.drift, JSON.stringify([['members', NAME, NAME]]))
    store.db.exec(`CREATE TRIGGER ${quote(NAME)} AFTER DELETE ON teams BEGIN SELECT 1; END`)
  })
  putMessage(store, { id: NAME, subject: NAME, text: NAME })
  putMeeting(store, { id: NAME, title: NAME, said: [NAME], chapters: [{ title: NAME, items: [NAME] }] })
  await store.crmTables.finish()
  await build(store)
  const [table] = store.column("SELECT name FROM sqlite_schema WHERE name LIKE 'crm!_offer%' ESCAPE '!'")
  store.close()
  return { cwd, table: String(table) }
}

test('no command prints a terminal control character of names, labels, texts, reasons or triggers of others', async () => {
  const { cwd, table } = await hostileWarehouse()
  const published = join(cwd, 'published')
  const commands = [
    ...[[], ['--json'], ['--datasette'], ['--duckdb'], ['--spark'], ['offer'], [table]].map(rest => [
      'schema',
      ...rest,
    ]),
    ...[['offer'], ['offer', '--json'], ['of', '--sql']].map(rest => ['search', ...rest]),
    ...[[], ['--json'], ['--fields'], ['--check']].map(rest => ['status', ...rest]),
    ['doctor'],
    ['export', 'parquet', join(cwd, 'exported')],
    ['publish', published],
    ['publish', 'verify', published],
  ]
  const statuses: (number | null)[] = []
  for (const command of commands) {
    const { status, stdout, stderr } = await parley(command, { cwd })
    statuses.push(status)
    const lines = `${stdout}\n${stderr}`.split('\n')
    expect({ command, lines: lines.filter(line => UNSAFE.test(line)) }).toEqual({ command, lines: [] })
    if (command[0] === 'doctor') expect(stdout).toContain('parley did not create offer')
  }
  const unsuccessful = statuses.flatMap((status, at) => (status === 0 ? [] : [commands[at]?.join(' ')]))
  expect(unsuccessful).toEqual(['schema offer', 'status --check', 'doctor'])
})

test('a word of a command is the same word after a shell has read it', () => {
  const words = [
    '/srv/a-b_c.d',
    'no space here',
    "o'clock",
    '$HOME',
    'a;b',
    '`id`',
    '*',
    '~',
    'ä',
    '',
    '-n',
    'a"b',
  ]
  const script = words.map(word => `printf '%s\\0' ${shellWord(word)}`).join('\n')
  expect(execFileSync('sh', ['-c', script], { encoding: 'utf8' })).toBe(
    words.map(word => `${word}\0`).join(''),
  )
  expect(shellWord('/srv/a-b_c.d')).toBe('/srv/a-b_c.d')
})
