import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { hitOf } from '../../src/commands/search/hits.ts'
import { statementCache } from '../../src/store/database/statements.ts'
import { openWarehouse } from '../../src/store/open-warehouse.ts'
import { SEARCH_INDICES } from '../../src/store/search/index-schema.ts'
import { createSearchIndices } from '../../src/store/search/indices.ts'
import { type SearchRow, termsOf } from '../../src/store/search/query.ts'
import { openStore } from '../../src/store/store.ts'
import { migrationsWith } from '../migrations/older-version.ts'
import { runs, share } from '../support/effort.ts'
import { advance, ask, build, found, hitsOf, NOW, putMeeting, putMessage, say } from './searchable.ts'
import { newFolder, openAt, type TemporaryStore, temporaryStore, withShortcuts } from './temporary-store.ts'

const WORDS = [
  '見積書',
  '契約の更新',
  'budget',
  'renewal of contracts',
  '50% off',
  'under_score',
  'a"b',
  '導入',
]

/** An item of every kind, distinguished by a letter. */
function putOne(store: TemporaryStore, letter: string, word: string): void {
  putMessage(store, { id: `s${letter}`, subject: `Re: ${word} ${letter}`, text: 'Hello' })
  putMessage(store, { id: `t${letter}`, subject: `Hello ${letter}`, text: `We spoke of ${word}.` })
  putMeeting(store, {
    id: `m${letter}`,
    title: `${word} ${letter}`,
    chapters: [{ title: `On ${word}`, items: ['Nothing', `${word} is agreed`] }],
    actions: [{ text: 'Write' }, { text: `Send ${word}` }, { text: 'Call', detail: `about ${word}` }],
    said: ['Good morning', `${word} is what I would say`],
  })
}

/** Texts so long that a few of them fill a batch. */
const MUCH = ' and more'.repeat(60)

const KINDS_OF_ONE = [
  'action-item',
  'action-item',
  'meeting',
  'message',
  'message',
  'summary',
  'summary',
  'transcript',
]

const kindsFound = (store: TemporaryStore, typed: string) =>
  ask(store, typed)
    .rows.map(({ kind }) => kind)
    .sort()

const objects = (store: TemporaryStore) =>
  store.column("SELECT name FROM sqlite_master WHERE name LIKE 'search%' ORDER BY 1")

/** The row ids that an index has for three consecutive characters. */
function inIndex(store: TemporaryStore, index: string, trigram: string): unknown[] {
  return store.db.prepare(`SELECT rowid FROM ${index} WHERE ${index} MATCH ?`).pluck().all(`"${trigram}"`)
}

describe('the texts that a search finds', () => {
  test.each(WORDS)('a search for %s finds text of every kind', async word => {
    const store = temporaryStore()
    putOne(store, 'x', word)
    putOne(store, 'y', 'something else')
    const phrase = `"${word.replaceAll('"', '')}"`
    const typed = word.includes('"') ? 'a b' : phrase
    const before = kindsFound(store, typed)
    await build(store)
    expect(kindsFound(store, typed)).toEqual(before)
    if (!word.includes('"')) expect(before).toEqual(KINDS_OF_ONE)
  })

  test('a search finds rows written before and after the indices were created', async () => {
    const store = temporaryStore()
    putOne(store, 'a', 'budget')
    await build(store)
    putOne(store, 'b', 'budget')
    expect(ask(store, 'budget').rows).toHaveLength(16)
    await build(store)
    expect(ask(store, 'budget').rows).toHaveLength(16)
    expect(ask(store, 'budget').unindexed).toBe(0)
  })

  test('a search ignores letter case, beyond ASCII too', async () => {
    const store = temporaryStore()
    putMessage(store, { id: 'm', subject: 'MÜLLER und Söhne', text: 'Élève, ПРИВЕТ' })
    for (const word of ['müller', 'Müller', 'SÖHNE', 'élève', 'привет']) {
      expect(found(store, word)).toHaveLength(1)
    }
    await build(store)
    for (const word of ['müller', 'Müller', 'SÖHNE', 'élève', 'привет']) {
      expect(found(store, word)).toHaveLength(1)
    }
  })

  test('a word with any letter that has two cases finds its own text through the index', async () => {
    const store = temporaryStore()
    const letters: string[] = []
    for (let point = 0; point <= 0x1_ff_ff; point++) {
      const letter = String.fromCodePoint(point)
      if (letter.toLowerCase() !== letter.toUpperCase()) letters.push(`q${letter}z`)
    }
    expect(letters.length).toBeGreaterThan(2900)
    const texts: string[] = []
    while (letters.length > 0) texts.push(letters.splice(0, 50).join(' '))
    for (const [at, text] of texts.entries()) putMessage(store, { id: `m${at}`, text })
    await build(store)
    expect(ask(store, texts[0] ?? '').sql).toContain('MATCH')
    expect(share(texts).filter(text => !found(store, text).includes(`message: ${text}`))).toEqual([])
  })

  test.each([
    ['İstanbul TEKLİF', 'TEKLİF'],
    ['Οδός', 'ΟΔΌΣ'],
    ['ΟΔΌΣ', 'οδός'],
    ['İstanbul', 'istanbul'],
    ['İstanbul', 'ISTANBUL'],
    ['istanbul', 'İSTANBUL'],
    ['kapı', 'KAPI'],
    ['12\u00b5Sv', '12\u03bcSV'],
    ['12\u03bcSv', '12\u00b5sv'],
    ['10k\u2126', '10kω'],
    ['Lange Straße 3', 'STRASSE'],
    ['Lange Strasse 3', 'Straße'],
    ['LANGE STRAẞE 3', 'STRASSE'],
    ['LANGE STRAẞE 3', 'Straße'],
    ['Lange Strasse 3', 'STRAẞE'],
    ['Ame\u0301lie cafe\u0301', 'Amélie'],
    ['Amélie', 'Ame\u0301lie'],
    ['a line\nbreak', '"line break"'],
    ['a line\r\nbreak', '"line break"'],
    ['a line \r\nbreak', '"line break"'],
    ['a line\rbreak', '"line break"'],
    ['a line\tbreak', '"line break"'],
    ['a line\u00a0break', '"line break"'],
    ['a line break', '"line  \u00a0 break"'],
    ['to\nbe', '"to be"'],
  ])('the text %j is found by %s', async (text, typed) => {
    const store = temporaryStore()
    putMessage(store, { id: 'm', text })
    putMessage(store, { id: 'n', text: 'another linebreak, tobe' })
    expect(found(store, typed)).toEqual([`message: ${text}`])
    await build(store)
    expect(found(store, typed)).toEqual([`message: ${text}`])
    const { marks } = hitOf(ask(store, typed).rows[0] as SearchRow, termsOf(typed)).snippet
    expect(marks).toHaveLength(1)
  })

  test('a search ignores full and half width, in texts and in terms', async () => {
    const store = temporaryStore()
    const texts = [
      'ＡＢＣ商事 Ｑ２',
      'ABC商事 q2',
      'Abc商事　Q２',
      'パイロット・ガイド',
      'ﾊﾟｲﾛｯﾄ･ｶﾞｲﾄﾞ',
      '￥１，０００（税込）',
      'バグ報告',
      'ﾊﾞｸﾞ報告',
    ]
    for (const [at, subject] of texts.entries()) putMessage(store, { id: `m${at}`, subject })
    const asked: [typed: string, places: readonly number[]][] = [
      ['abc商事', [0, 1, 2]],
      ['ａｂｃ商事', [0, 1, 2]],
      ['"商事 q2"', [0, 1, 2]],
      ['パイロット', [3, 4]],
      ['ﾊﾟｲﾛｯﾄ', [3, 4]],
      ['ガ', [3, 4]],
      ['バグ', [6, 7]],
      ['ﾊﾞｸﾞ', [6, 7]],
      ['q2', [0, 1, 2]],
      ['¥1,000(税込)', [5]],
      ['abd商事', []],
    ]
    const answers = () => asked.map(([typed]) => found(store, typed))
    const wanted = asked.map(([, places]) => places.map(at => `message: ${texts[at]}`).sort())
    expect(answers()).toEqual(wanted)
    await build(store)
    expect(answers()).toEqual(wanted)
    expect(ask(store, 'ａｂｃ商事').sql).toContain('MATCH')
  })

  test('a search finds answers to a playbook, with their question, of live results of open meetings', async () => {
    const store = temporaryStore()
    for (const [id, access] of [
      ['open', 'open'],
      ['secret', 'withheld'],
      ['gone', 'open'],
    ] as const) {
      putMeeting(store, { id, title: id, access })
      const answers = [{ id: 'a', talk_point_id: 't', question: 'Which budget?', answer: 'Ten thousand' }]
      const result = {
        id: `of ${id}`,
        playbook_id: 'p',
        playbook_name: 'Discovery',
        talk_point_results: answers,
      }
      store.put('playbook_results', [result], { requested: id })
    }
    store.atomically(() => store.tombstone('playbook_results', [['of gone']], NOW))
    for (const isBuilt of [false, true]) {
      if (isBuilt) await build(store)
      expect(ask(store, 'thousand', { kinds: ['answer'] }).rows).toEqual([
        expect.objectContaining({
          kind: 'answer',
          meeting_id: 'open',
          who: 'Discovery',
          text: 'Ten thousand',
          detail: 'Which budget?',
        }),
      ])
      expect(found(store, 'thousand')).toEqual(['answer: Ten thousand'])
      expect(found(store, 'budget')).toEqual([])
    }
  })

  test('a search finds all words in one text, and not in two', async () => {
    const store = temporaryStore()
    putMessage(store, { id: 'a', subject: 'Budget', text: 'of Hamburg' })
    putMessage(store, { id: 'b', subject: 'Budget', text: 'of Madrid' })
    putMeeting(store, { id: 'm', title: 'Budget', said: ['Hamburg'] })
    await build(store)
    expect(found(store, 'hamburg budget')).toEqual(['message: of Hamburg'])
  })
})

describe('the rows that a search finds', () => {
  test('a search finds neither deleted nor withheld rows', async () => {
    const store = temporaryStore()
    putOne(store, 'a', 'budget')
    putOne(store, 'b', 'budget')
    await build(store)
    store.db.transaction(() => {
      store.tombstone('meetings', [['ma']], NOW)
      store.tombstone('message_copies', [['sa'], ['ta']], NOW)
    })()
    putMeeting(store, { id: 'mb', title: 'budget b', access: 'withheld', said: ['budget'] })
    expect(kindsFound(store, 'budget')).toEqual(['message', 'message'])
  })
})

describe('an index that is kept up to date', () => {
  test('the index follows rows that change, disappear and arrive', async () => {
    const store = temporaryStore()
    putOne(store, 'a', 'budget')
    putOne(store, 'b', 'budget')
    await build(store)
    putOne(store, 'a', 'renewal')
    say(store, 'mb', ['Nothing more'])
    for (const [index, left] of [
      ['search_messages', 2],
      ['search_transcripts', 0],
      ['search_meetings', 5],
    ] as const) {
      expect(inIndex(store, index, 'udg')).toHaveLength(left)
    }
    await build(store)
    expect(kindsFound(store, 'renewal')).toEqual(KINDS_OF_ONE)
    expect(inIndex(store, 'search_transcripts', 'ewa')).toHaveLength(1)
  })

  test('the index follows every write while it is built', async () => {
    const store = temporaryStore()
    for (let at = 0; at < 200; at += 1) putOne(store, `a${at}`, `budget${MUCH}`)
    let pieces = 0
    for (; pieces < 30 && advance(store); pieces += 1) {
      putOne(store, `a${pieces}`, 'renewal')
      putOne(store, `b${pieces}`, 'renewal')
    }
    expect(pieces).toBe(30)
    await build(store)
    for (const { name } of SEARCH_INDICES) {
      store.db.exec(`INSERT INTO ${name} (${name}) VALUES ('integrity-check')`)
    }
    const byIndex = ask(store, 'renewal').rows.length
    await build(store, false)
    expect(byIndex).toBe(ask(store, 'renewal').rows.length)
    expect(byIndex).toBeGreaterThan(100)
  })

  const words = fc.array(fc.constantFrom('見積書', 'budget', 'ab', 'Ü', ''), { maxLength: 5 })
  const text = words.map(some => some.join(' '))
  const texts = fc.array(text, { maxLength: 4 })
  const number = fc.nat({ max: 5 })
  const purge = (store: TemporaryStore, limit: number) => {
    store.purger.purge({ before: '2027-01-01T00:00:00.000Z', limit, now: '2027-01-01T00:00:00.000Z' })
    createSearchIndices(store).forget()
  }
  const action = <Given>(given: fc.Arbitrary<Given>, act: (store: TemporaryStore, given: Given) => void) =>
    given.map(one => (store: TemporaryStore) => store.db.transaction(() => act(store, one))())
  /** Changes the texts, or advances the indices by a step. */
  const actions = fc.array(
    fc.oneof(
      action(fc.record({ id: number.map(String), subject: text }), putMessage),
      action(fc.record({ id: number.map(String), text }), putMessage),
      action(
        fc.record({
          id: number.map(at => `m${at}`),
          title: text,
          chapters: fc.array(fc.record({ title: text, items: texts }), { maxLength: 3 }),
          actions: fc.array(fc.record({ text, detail: text }), { maxLength: 3 }),
          said: texts,
          access: fc.constantFrom('open' as const, 'withheld' as const),
        }),
        putMeeting,
      ),
      action(number, (store, at) => store.tombstone('meetings', [[`m${at}`]], NOW)),
      action(number, (store, at) => store.tombstone('message_copies', [[`${at}`]], NOW)),
      action(number, (store, at) => purge(store, at + 1)),
      action(fc.constant(true), store => createSearchIndices(store).advance(true, () => false)),
    ),
    { minLength: 20, maxLength: 80 },
  )
  const contents = (store: TemporaryStore) =>
    SEARCH_INDICES.map(({ name }) => {
      store.db.exec(`CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, ${name}, row)`)
      const all = store.all('SELECT term, doc FROM temp.terms')
      store.db.exec('DROP TABLE temp.terms')
      return all
    })

  test('the index equals a new one, whatever rows are written, deleted, purged and read again', async () => {
    await fc.assert(
      fc.asyncProperty(actions, async some => {
        const store = temporaryStore()
        for (const act of some) act(store)
        await build(store)
        const kept = contents(store)
        await build(store, false)
        await build(store)
        expect(kept).toEqual(contents(store))
      }),
      { numRuns: runs(15), endOnFailure: true },
    )
  })

  test('the index follows writes of every program, not of parley alone', async () => {
    const store = temporaryStore()
    putOne(store, 'a', 'budget')
    await build(store)
    store.db.exec(
      "UPDATE meeting_chapter_items SET item = 'renewal' WHERE position = 1; DELETE FROM meeting_action_items",
    )
    expect(found(store, 'renewal')).toEqual(['summary: renewal'])
    expect(found(store, 'budget', { kinds: ['action-item'] })).toEqual([])
    expect(inIndex(store, 'search_meetings', 'udg')).toHaveLength(2)
  })
})

describe('an index that is built in small transactions', () => {
  test('a process that ends between two transactions loses nothing', async () => {
    const folder = newFolder()
    const path = join(folder, 'parley.db')
    const openAgain = () => withShortcuts(openAt(path), folder, path)
    let store = openAgain()
    for (let at = 0; at < 120; at += 1) putOne(store, `a${at}`, `budget${MUCH}`)
    let pieces = 0
    while (advance(store)) {
      pieces += 1
      store.close()
      store = openAgain()
    }
    expect(pieces).toBeGreaterThan(5)
    expect(createSearchIndices(store).isDue(true)).toBe(false)
    expect(inIndex(store, 'search_transcripts', 'udg')).toHaveLength(120)
    const sizes = SEARCH_INDICES.map(({ name }) => store.column(`SELECT count(*) FROM ${name}_data`))
    pieces = 0
    while (advance(store, false)) {
      pieces += 1
      store.close()
      store = openAgain()
    }
    expect(pieces).toBeGreaterThan(sizes.length)
    expect(objects(store)).toEqual([])
    store.close()
  })

  test('a transaction is as large as its texts, whatever rows without a text come before', () => {
    const store = temporaryStore()
    for (let at = 0; at < 600; at += 1) putMessage(store, { id: `a${at}` })
    for (let at = 0; at < 600; at += 1) putMessage(store, { id: `b${at}`, text: `${at} `.repeat(2500) })
    const search = createSearchIndices(store)
    const mark = () => store.column("SELECT indexed_up_to FROM search_indices WHERE name = 'search_messages'")
    const steps = 4
    let before = 0
    let longest = 0
    for (let more = true; more; ) {
      let left = steps
      more = store.db.transaction(() => search.advance(true, () => --left > 0))()
      const after = Number(mark())
      const sql = `SELECT coalesce(sum(octet_length(text)), 0) FROM messages WHERE _id > ${before} AND _id <= ${after}`
      longest = Math.max(longest, Number(store.column(sql)))
      before = after
    }
    expect(before).toBe(1200)
    expect(longest).toBeGreaterThan(50_000)
    expect(longest).toBeLessThan(32_768 * (2 ** steps - 1))
  })

  test('a transaction has at least one row, however long it is', () => {
    const store = temporaryStore()
    for (let at = 0; at < 80; at += 1) putMessage(store, { id: `a${at}`, text: 'budget '.repeat(10_000) })
    const search = createSearchIndices(store)
    while (store.db.transaction(() => search.advance(true, () => true))());
    expect(search.isDue(true)).toBe(false)
    expect(inIndex(store, 'search_messages', 'udg')).toHaveLength(80)
  })

  test('the progress of a build never exceeds 100 %', async () => {
    const store = temporaryStore()
    putMeeting(store, { id: 'm', said: ['Good morning', 'Good day', 'Good evening'] })
    await build(store)
    say(store, 'm', ['Good night'])
    const { done, total } = createSearchIndices(store).progress()
    expect(done).toBe(total)
  })

  test('every table can be counted during a build, as tools do', async () => {
    const store = temporaryStore()
    putOne(store, 'a', 'budget')
    await build(store)
    const counts = SEARCH_INDICES.map(({ name }) => store.column(`SELECT count(*) > 0 FROM ${name}`))
    expect(counts).toEqual([[1], [1], [1]])
  })

  test('an index that another version built is built again', async () => {
    const store = temporaryStore()
    putOne(store, 'a', 'budget')
    await build(store)
    store.db.exec('DROP TRIGGER search_messages_messages_update')
    putMessage(store, { id: 'ta', subject: 'Hello a', text: 'A renewal that no index knows of' })
    store.db.prepare("UPDATE messages SET text = 'renewal' WHERE id = 'ta'").run()
    await build(store)
    expect(inIndex(store, 'search_messages', 'ewa')).toHaveLength(1)
    expect(objects(store)).toContain('search_messages_messages_update')
  })

  test('an index is built again after an upgrade that rebuilds its table', async () => {
    const folder = newFolder()
    const path = join(folder, 'parley.db')
    const store = withShortcuts(openAt(path), folder, path)
    putOne(store, 'a', 'budget')
    await build(store)
    const [sql = ''] = store.column("SELECT sql FROM sqlite_master WHERE name = 'meetings'").map(String)
    store.close()
    const rebuilt = sql.replace('meetings', '__new_meetings')
    const migrations = migrationsWith(
      folder,
      '0900_next',
      `${rebuilt}; INSERT INTO __new_meetings SELECT * FROM meetings; DROP TABLE meetings;
       ALTER TABLE __new_meetings RENAME TO meetings; CREATE UNIQUE INDEX meetings_key ON meetings (id);
       UPDATE meetings SET title = 'renewal';`,
    )
    const db = openWarehouse({ path, migrations })
    expect(db.prepare('SELECT count(*) FROM search_indices').pluck().get()).toBe(0)
    const prepare = statementCache(db)
    const search = createSearchIndices({ db, prepare })
    while (db.transaction(() => search.advance(true, () => true))());
    const found = `SELECT count(*) FROM search_meetings WHERE search_meetings MATCH '"ewa"'`
    expect(db.prepare(found).pluck().get()).toBe(1)
    db.close()
  })

  test('a query by hand finds no index at any step of its removal', async () => {
    const store = temporaryStore()
    for (let at = 0; at < 300; at += 1) putOne(store, `a${at}`, 'budget')
    await build(store)
    const search = createSearchIndices(store)
    const said = new Set<string>()
    const asks = SEARCH_INDICES.map(({ name }) => `SELECT rowid FROM ${name} WHERE ${name} MATCH '"udg"'`)
    while (store.db.transaction(() => search.advance(false, () => false))()) {
      for (const sql of asks) {
        try {
          store.db.prepare(sql).all()
        } catch (error) {
          said.add(String(error).replace(/: search_\w+$/, ''))
        }
      }
    }
    expect([...said]).toEqual(['SqliteError: no such table'])
    expect(objects(store)).toEqual([])
  })

  test('the views of analysts stay unchanged, broken ones too', async () => {
    const store = temporaryStore()
    putOne(store, 'a', 'budget')
    await build(store)
    store.db.exec(`CREATE VIEW own AS SELECT rowid FROM search_messages WHERE search_messages MATCH '"udg"';
      CREATE VIEW broken AS SELECT * FROM no_such_table`)
    await build(store, false)
    await build(store)
    expect(store.column('SELECT count(*) FROM own')).toEqual([2])
  })

  test('indices that are turned off leave nothing behind', async () => {
    const store = temporaryStore()
    const before = store.column('SELECT name FROM sqlite_master')
    putOne(store, 'a', 'budget')
    await build(store)
    await build(store, false)
    expect(store.column('SELECT name FROM sqlite_master')).toEqual(before)
    expect(ask(store, 'budget').unindexed).toBe(1)
    expect(kindsFound(store, 'budget')).toEqual(KINDS_OF_ONE)
  })
})

describe('content that was purged', () => {
  /** Each of its characters occurs nowhere else. Two of them are six bytes, which nothing else equals by chance. */
  const SECRET = '鬱鬲鱻龘麤爨齉饕'
  const bytesOf = (text: string) => Buffer.from(text).toString('latin1')
  const inFile = (store: TemporaryStore) => readFileSync(store.path).toString('latin1')
  /** The last two of each three characters: the index may store the first as the prefix shared with the entry before. */
  const traces = Array.from({ length: 6 }, (_, at) => bytesOf(SECRET.slice(at + 1, at + 3)))

  const ALL = SEARCH_INDICES.map(({ name }) => String(name))
  const blocksOf = (store: TemporaryStore, indices = ALL) => {
    const blocks = indices.flatMap(name => store.column(`SELECT block FROM ${name}_data`))
    return Buffer.concat(blocks.map(block => Buffer.from(block as Uint8Array))).toString('latin1')
  }
  const tracesIn = (bytes: string) => traces.filter(trace => bytes.includes(trace))

  test('purged content leaves the indices completely', async () => {
    const store = temporaryStore()
    for (let at = 0; at < 50; at += 1) putOne(store, `a${at}`, 'budget')
    putOne(store, 'z', SECRET)
    await build(store)
    expect(tracesIn(blocksOf(store))).toEqual(traces)
    store.db.transaction(() => {
      store.tombstone('meetings', [['mz']], NOW)
      store.tombstone('message_copies', [['sz'], ['tz']], NOW)
      store.purger.purge({
        before: '2027-01-01T00:00:00.000Z',
        limit: 1000,
        now: '2027-01-01T00:00:00.000Z',
      })
      createSearchIndices(store).forget()
    })()
    await build(store)
    expect(tracesIn(blocksOf(store))).toEqual([])
    expect(await store.purger.clean({ rebuild: false })).toBe(false)
    expect(store.purger.remains().inLog).toBe(false)
    expect(tracesIn(inFile(store))).toEqual([])
    expect(inIndex(store, 'search_meetings', 'udg')).toHaveLength(250)
  })

  const forget = (store: TemporaryStore) => store.db.transaction(() => createSearchIndices(store).forget())()

  test.each<[string, (store: TemporaryStore) => void]>([
    ['the old text of an edited e-mail', store => putMessage(store, { id: 'tz', text: 'Plain' })],
    ['the old title of an edited meeting', store => putMeeting(store, { id: 'mz', title: 'Plain' })],
    ['the old text of an edited transcript', store => say(store, 'mz', ['Plain'])],
    [
      'the text of a transcript that the API no longer offers',
      store => store.db.transaction(() => store.transcripts.clear('mz', 'empty', NOW))(),
    ],
  ])('%s leaves the indices completely', async (_, edit) => {
    const store = temporaryStore()
    for (let at = 0; at < 50; at += 1) putOne(store, `a${at}`, 'budget')
    putMessage(store, { id: 'tz', text: SECRET })
    putMeeting(store, { id: 'mz', title: SECRET, said: [SECRET] })
    await build(store)
    edit(store)
    // Texts of the other kinds stay, so only the blocks of the edited text's index are compared.
    const outdated = store.column("SELECT name FROM search_indices WHERE state = 'outdated'").map(String)
    expect(outdated).toHaveLength(1)
    await build(store)
    expect(tracesIn(blocksOf(store, outdated))).toEqual(traces)
    expect(forget(store)).toBe(true)
    await build(store)
    expect(tracesIn(blocksOf(store, outdated))).toEqual([])
  })

  test('an index from whose rows no text was edited or deleted is not rewritten by a purge', async () => {
    const store = temporaryStore()
    for (let at = 0; at < 50; at += 1) putOne(store, `a${at}`, 'budget')
    await build(store)
    for (let at = 0; at < 2; at += 1) putOne(store, `b${at}`, 'budget')
    await build(store)
    // A first text, a change of another column, and a new place in a list remove no text.
    putMessage(store, { id: 'c', subject: 'Hello' })
    await build(store)
    putMessage(store, { id: 'c', subject: 'Hello', text: 'Budget' })
    store.db.exec(
      'UPDATE messages SET thread_id = 1; UPDATE meeting_action_items SET position = position + 5',
    )
    await build(store)
    const ids = () => SEARCH_INDICES.map(({ name }) => store.column(`SELECT id FROM ${name}_data ORDER BY 1`))
    const before = ids()
    expect(forget(store)).toBe(false)
    await build(store)
    expect(ids()).toEqual(before)
    store.db.exec("UPDATE messages SET text = 'renewal' WHERE id = 'tb0'")
    expect(forget(store)).toBe(true)
    await build(store)
    const [messages, ...others] = ids()
    expect(messages).not.toEqual(before[0])
    expect(others).toEqual(before.slice(1))
  })

  test('texts that are written during a purge do not stop it half-way, and lost ones are left to the next purge', async () => {
    const store = temporaryStore()
    // More blocks than one step merges.
    const character = (at: number) => String.fromCodePoint(0x4e00 + (at % 18_000))
    const different = (of: number) =>
      Array.from({ length: 300 }, (_, at) => character(of * 37 + at * 101)).join('')
    for (let at = 0; at < 200; at += 1) putMessage(store, { id: `a${at}`, text: different(at) })
    putMessage(store, { id: 'z', text: SECRET })
    await build(store)
    // A purge first, so that the next one merges two parts of the index.
    putMessage(store, { id: 'a0', text: 'First' })
    forget(store)
    await build(store)
    putMessage(store, { id: 'z', text: 'Plain' })
    forget(store)
    advance(store)
    const stateOf = () => store.column("SELECT state FROM search_indices WHERE name = 'search_messages'")
    expect(stateOf()).toEqual(['being joined'])
    for (let at = 0; at < 3; at += 1) putMessage(store, { id: `a${at}`, text: `Other ${at}` })
    expect(stateOf()).toEqual(['being joined, outdated'])
    await build(store)
    expect(stateOf()).toEqual(['outdated'])
    expect(tracesIn(blocksOf(store, ['search_messages']))).toEqual([])
    expect(forget(store)).toBe(true)
    await build(store)
    expect(stateOf()).toEqual(['kept'])
    expect(forget(store)).toBe(false)
  })
})

describe('a search term that looks like syntax', () => {
  const sign = fc.constantFrom(
    ...'abAB%_\\"\'?*^:-+(){}[]~、見積書 　ü🙂Ａｂ＊］ガｶﾞ'.split(''),
    'NOT ',
    'OR ',
    'NEAR(',
    'text:',
  )
  const text = fc.array(sign, { maxLength: 12 }).map(parts => parts.join(''))

  test('the index and the printed SQL find the same rows as a comparison with each text, for any term', async () => {
    const store = temporaryStore()
    const texts = fc.sample(text, { numRuns: 150, seed: 7 })
    texts.forEach((one, at) => {
      putMessage(store, { id: `m${at}`, subject: one, text: texts[at + 1] ?? '' })
    })
    const queries = fc.sample(text, { numRuns: runs(200), seed: 8 }).filter(typed => typed.trim() !== '')
    const asked = queries.filter(typed => !/^["\s　]*$/.test(typed))
    const slow = asked.map(typed => found(store, typed))
    await build(store)
    const answers = asked.map(typed => ask(store, typed))
    expect(answers.map(({ rows }) => hitsOf(rows))).toEqual(slow)
    for (const { sql, rows } of answers) expect(store.all(sql)).toEqual(rows)
    expect(slow.flat().length).toBeGreaterThan(asked.length / 2)
  })
})

describe('terms of one and two characters', () => {
  test('a rare short term is found through the index at any place', async () => {
    const store = temporaryStore()
    const texts = ['見積', 'お見積', '見積り', 'お見積りの件', '見 積', 'A', 'zA9', 'x 見']
    texts.forEach((subject, at) => {
      putMessage(store, { id: `m${at}`, subject })
    })
    for (let at = 0; at < 800; at += 1) putMessage(store, { id: `n${at}`, subject: '契約の件' })
    const asked = ['見積', '見', '積', 'り', 'a', '9', '見 積', '見 の', '？？', '契約']
    const slow = asked.map(typed => found(store, typed))
    await build(store)
    expect(asked.map(typed => found(store, typed))).toEqual(slow)
    expect(ask(store, '見積', { limit: 20 }).sql).toContain('MATCH')
    expect(ask(store, '契約', { limit: 20 }).sql).not.toContain('MATCH')
    putMessage(store, { id: 'new', subject: '？？' })
    expect(found(store, '？？')).toEqual(['message: ？？'])
  })
})

describe('a search with many hits', () => {
  test('the newest of many hits are found by every method', async () => {
    const store = temporaryStore()
    const day = (at: number) => new Date(Date.parse(NOW) + at * 86_400_000).toISOString()
    for (let at = 0; at < 700; at += 1)
      putMessage(store, { id: `m${at}`, subject: `Budget ${at}`, at: day(at) })
    const newest = () => ask(store, 'budget', { limit: 3 }).rows.map(({ title }) => title)
    expect(newest()).toEqual(['Budget 699', 'Budget 698', 'Budget 697'])
    await build(store)
    expect(newest()).toEqual(['Budget 699', 'Budget 698', 'Budget 697'])
    expect(ask(store, 'budget', { limit: 3 }).sql).not.toContain('MATCH')
    expect(ask(store, '"budget 69"', { limit: 3 }).sql).toContain('MATCH')
    const within = { from: day(10), to: day(12), limit: 5 }
    expect(ask(store, 'budget', within).rows.map(({ title }) => title)).toEqual(['Budget 11', 'Budget 10'])
  })
})

test('a damaged index is named by the error, and dropping it and building it again mends it', async () => {
  const store = temporaryStore()
  putOne(store, 'a', 'budget')
  await build(store)
  store.db.unsafeMode(true)
  store.db.exec("UPDATE search_messages_data SET block = x'a5a5a5a5a5a5a5a5' WHERE id > 10")
  store.db.unsafeMode(false)
  expect(() => ask(store, 'budget')).toThrow('a full-text index of the search is damaged, the rows are not')
  await build(store, false)
  expect(ask(store, 'budget').rows).toHaveLength(8)
  await build(store)
  expect(ask(store, 'budget').rows).toHaveLength(8)
})

describe('a damaged index that the writer meets', () => {
  async function indexed() {
    const said: string[] = []
    const folder = newFolder()
    const path = join(folder, 'parley.db')
    const onDamagedSearch = () => said.push('damaged')
    const opening = { path, mode: 0o600, command: 'test', pid: 1, clock: systemClock(), onDamagedSearch }
    const open = () => {
      const opened = openStore(opening)
      onTestFinished(() => opened.close())
      return withShortcuts(opened, folder, path)
    }
    const store = open()
    putOne(store, 'a', 'budget')
    await build(store)
    return { store, said, open }
  }

  async function damaged(condition: string, index = 'search_messages') {
    const { store, said } = await indexed()
    store.db.unsafeMode(true)
    store.db.exec(`UPDATE ${index}_data SET block = x'a5a5a5a5a5a5a5a5' WHERE ${condition}`)
    store.db.unsafeMode(false)
    return { store, said }
  }

  test('writes of rows continue after one that fails, and the index is built again', async () => {
    const { store, said } = await damaged('id = 10')
    const edit = () =>
      store.transaction(() => store.db.exec("UPDATE messages SET text = 'Of budget' WHERE text IS NOT NULL"))
    const failed = await Promise.allSettled([edit(), edit()])
    expect(failed.map(one => one.status === 'rejected' && one.reason.code)).toEqual([
      'search-rebuilt',
      'search-rebuilt',
    ])
    await edit()
    expect(said).toEqual(['damaged'])
    await build(store)
    expect(createSearchIndices(store).isDue(true)).toBe(false)
    expect(ask(store, 'budget').rows).toHaveLength(8)
  })

  describe.each(['search_messages', 'search_meetings', 'search_indices'])('without its table %s', table => {
    test('a search still finds all rows', async () => {
      const { store } = await indexed()
      store.db.exec(`DROP TABLE ${table}`)
      const { rows, unindexed } = ask(store, 'budget')
      expect(rows).toHaveLength(8)
      expect(unindexed).toBeGreaterThan(0.05)
    })

    test('it is built again after a write that fails', async () => {
      const { store, said } = await indexed()
      store.db.exec(`DROP TABLE ${table}`)
      const edit = () =>
        store.transaction(() => {
          store.db.exec("UPDATE messages SET text = 'Of budget' WHERE text IS NOT NULL")
          store.db.exec("UPDATE meetings SET title = 'Of budget'")
        })
      await expect(edit()).rejects.toMatchObject({ code: 'search-rebuilt' })
      await edit()
      expect(said).toEqual(['damaged'])
      await build(store)
      expect(ask(store, 'budget')).toMatchObject({ rows: { length: 8 }, unindexed: 0 })
    })

    test('it is built again without any write', async () => {
      const { store } = await indexed()
      store.db.exec(`DROP TABLE ${table}`)
      await build(store)
      expect(ask(store, 'budget')).toMatchObject({ rows: { length: 8 }, unindexed: 0 })
    })

    test('the next process opens the warehouse and builds it again', async () => {
      const { store, said, open } = await indexed()
      store.db.exec(`DROP TABLE ${table}`)
      store.close()
      const next = open()
      expect(said).toEqual(['damaged'])
      putOne(next, 'b', 'budget')
      await build(next)
      expect(ask(next, 'budget')).toMatchObject({ rows: { length: 16 }, unindexed: 0 })
    })
  })

  test('a build under way begins again when a write meets the damage', async () => {
    const { store } = await damaged('id = 10', 'search_transcripts')
    for (const letter of ['b', 'c', 'd']) putMessage(store, { id: letter, text: `budget ${letter}${MUCH}` })
    const search = createSearchIndices(store)
    const piece = () => store.db.transaction(() => search.advance(true, () => false))()
    piece()
    const edit = () => store.db.exec("UPDATE transcript_entries SET text = 'Of budget'")
    await expect(store.transaction(edit)).rejects.toMatchObject({ code: 'search-rebuilt' })
    let pieces = 0
    while (pieces < 200 && piece()) pieces += 1
    expect(pieces).toBeLessThan(200)
    expect(ask(store, 'budget').rows).toHaveLength(11)
  })

  test('a build begins again with an empty index', async () => {
    const { store, said } = await damaged('id >= 10')
    putOne(store, 'b', 'budget')
    await build(store)
    expect(said).toEqual(['damaged'])
    expect(ask(store, 'budget').rows).toHaveLength(16)
  })
})

test('the sqlite3 program reads the indices and runs the printed SQL', async () => {
  const store = temporaryStore()
  putOne(store, 'a', '見積書の件')
  await build(store)
  store.db.pragma('wal_checkpoint(TRUNCATE)')
  const run = (sql: string) => execFileSync('sqlite3', ['-readonly', store.path, sql], { encoding: 'utf8' })
  expect(run(`SELECT count(*) FROM search_messages WHERE search_messages MATCH '"見積書"'`)).toBe('2\n')
  expect(run("SELECT text FROM search_transcripts WHERE text LIKE '%見積書の%'")).toContain('見積書の件')
  expect(
    run(ask(store, '見積書の件').sql)
      .split('\n')
      .filter(line => /^\w+(-item)?\|/.test(line)),
  ).toHaveLength(8)
})
