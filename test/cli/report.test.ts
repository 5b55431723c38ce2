import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DAY_MS, utcDay } from '../../src/base/clock.ts'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { reportCommand } from '../../src/commands/report.ts'
import type { ReportFigures } from '../../src/report/read-report.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { writeMigratedFile } from '../store/migrated-file.ts'
import { emptyFolder, parley } from './parley.ts'
import { backfilled, type Place } from './workspace.ts'

const closers: (() => Promise<void>)[] = []
const untilTheEnd = { onTestFinished: (close: () => Promise<void>) => void closers.push(close) }
let place: Place

beforeAll(async () => {
  place = await backfilled(untilTheEnd, { deals: 20, messages: 200, meetings: 30 })
})
afterAll(async () => {
  for (const close of closers) await close()
})

const report = (args: readonly string[], { cwd }: Pick<Place, 'cwd'> = place) =>
  parley(['report', ...args], { cwd })

async function reportOf(where: Pick<Place, 'cwd'>): Promise<ReportFigures> {
  const { status, stdout, stderr } = await report(['--json'], where)
  expect([status, stderr]).toEqual([EXIT_STATUS.done, ''])
  return JSON.parse(stdout)
}

/** A copy of the warehouse after these statements. */
async function changed(sql: string): Promise<Place> {
  const copy = await backfilled(untilTheEnd, { deals: 20, messages: 200, meetings: 30 })
  const db = openSqlite(copy.file)
  db.exec(sql)
  db.close()
  return copy
}

const missing = ({ sections }: ReportFigures) => sections.map(section => section.missing)

describe('parley report', () => {
  test('it writes one file that only its owner can read', async () => {
    const { status, stdout } = await report(['one.html'])
    expect([status, stdout]).toEqual([
      EXIT_STATUS.done,
      expect.stringMatching(/^Wrote one\.html\. The data are complete as of \S+Z\.\n$/),
    ])
    const file = join(place.cwd, 'one.html')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readFileSync(file, 'utf8')).toMatch(/^<!doctype html>.*<\/html>\n$/s)
    expect(readdirSync(place.cwd).filter(name => name.endsWith('.part'))).toEqual([])
  })

  test('without a file it prints the page', async () => {
    const { status, stdout } = await report([])
    expect(status).toBe(EXIT_STATUS.done)
    expect(stdout).toMatch(/^<!doctype html>.*<\/html>\n$/s)
  })

  test('--json prints the answer of every question, with its main figure', async () => {
    const { complete_as_of, tables, sections, guesses } = await reportOf(place)
    expect(complete_as_of).toMatch(/Z$/)
    expect(tables).toEqual({ state: 'up to date', waiting: 0, notes: [] })
    expect(guesses).toContainEqual(expect.objectContaining({ name: 'crm.deal.amount', value: 'amount' }))
    expect(guesses.map(({ name }) => name)).toContainEqual(expect.stringMatching(/^outcome of .* \/ /))
    expect(sections.map(({ missing: why, rows }) => [why, rows.length > 0])).toEqual(
      sections.map(() => [null, true]),
    )
    expect(sections.map(({ sentence }) => sentence)).toEqual([
      expect.stringMatching(/^\d+ deals are open: [\d,]+ /),
      expect.stringMatching(/^In the week of \d{4}-\d\d-\d\d, [A-Z].* had the most: /),
      expect.stringMatching(/^In \d{4}-\d\d, half of our answers came within/),
      expect.stringMatching(/^In \d{4}-\d\d, our side spoke \d/),
      expect.stringMatching(/^\d+ deals are silent\.$/),
      expect.stringMatching(/^\d+ of \d+ open deals \(\d.* %\) /),
    ])
  })

  test('an earlier report is replaced, and no other file', async () => {
    const [earlier, other] = [join(place.cwd, 'earlier.html'), join(place.cwd, 'other.html')]
    expect((await report(['earlier.html'])).status).toBe(EXIT_STATUS.done)
    const before = readFileSync(earlier, 'utf8')
    expect((await report(['earlier.html'])).status).toBe(EXIT_STATUS.done)
    expect(readFileSync(earlier, 'utf8')).not.toBe(before)
    writeFileSync(other, '<title>Mine</title>')
    const { status, stderr } = await report(['other.html'])
    expect([status, stderr]).toEqual([
      EXIT_STATUS.usage,
      expect.stringContaining('is not a report of parley'),
    ])
    expect(readFileSync(other, 'utf8')).toBe('<title>Mine</title>')
  })

  test.each([
    [['parley.db'], EXIT_STATUS.usage, 'ends in .html'],
    [['a.html', '--json'], EXIT_STATUS.usage, 'takes no file'],
    [['folder.html'], EXIT_STATUS.usage, 'is not a report of parley'],
    [
      ['nowhere/a.html'],
      EXIT_STATUS.databaseUnavailable,
      'cannot be written: its folder does not exist (ENOENT)\nhint: Create the folder',
    ],
    [['a.html', '--database', 'none.db'], EXIT_STATUS.databaseUnavailable, 'There is no warehouse'],
  ])('%o is refused with %i and writes nothing', async (args, status, said) => {
    mkdirSync(join(place.cwd, 'folder.html'), { recursive: true })
    const ended = await report(args)
    expect([ended.status, ended.stderr]).toEqual([status, expect.stringContaining(said)])
    expect(existsSync(join(place.cwd, 'a.html'))).toBe(false)
  })

  test('a terminal gets no HTML, but the command that writes a file', async () => {
    const written: string[] = []
    const output = { write: (text: string) => written.push(text) }
    const ended = reportCommand.run(
      {
        ...{ env: {}, cwd: place.cwd, stdout: { ...output, isTTY: true }, stderr: output, version: '1' },
        ...{ signal: new AbortController().signal, onSignal: () => undefined },
        stdin: { on: () => undefined, off: () => undefined, resume: () => undefined, pause: () => undefined },
      },
      { args: [], options: {}, flags: {} },
    )
    await expect(ended).rejects.toMatchObject({
      exitStatus: EXIT_STATUS.usage,
      hint: 'Name a file: parley report report.html',
    })
    expect(written).toEqual([])
  })

  test('a warehouse before its first backfill has a report that says so', async () => {
    const cwd = emptyFolder()
    writeMigratedFile(join(cwd, 'parley.db'))
    const { complete_as_of, workspace, tables, sections } = await reportOf({ cwd })
    expect([complete_as_of, workspace, tables.state]).toEqual([null, null, 'missing'])
    expect(sections.map(section => section.missing)).toEqual(
      sections.map(() => expect.stringContaining('A backfill makes them at its end')),
    )
  })

  test('tables of somebody else are named, and what needs none of them is answered', async () => {
    const all = await changed('DROP VIEW deals; CREATE TABLE deals (mine TEXT)')
    const told = await reportOf(all)
    expect(missing(told)).toEqual(told.sections.map(() => expect.stringContaining('somebody else has made')))
    expect(told.sections[0]?.missing).toContain('deals')
    const some = await changed('DROP TABLE people; CREATE TABLE people (mine TEXT)')
    const [pipeline, activity] = missing(await reportOf(some))
    expect([pipeline, activity]).toEqual([null, expect.stringContaining('somebody else has made people.')])
  })

  test('a file of an older version says that this version has to upgrade it', async () => {
    const older = await changed(
      'DROP TABLE calendar; DROP TABLE _waiting_keys; DELETE FROM __drizzle_migrations WHERE created_at = (SELECT max(created_at) FROM __drizzle_migrations)',
    )
    const told = await reportOf(older)
    expect(missing(told)).toEqual(
      told.sections.map(() => expect.stringContaining('by an older version of parley')),
    )
  })

  test('a workspace without deals says that its CRM has none', async () => {
    const without = await changed("UPDATE report_settings SET value = NULL WHERE name = 'crm.deal.object'")
    const { sections } = await reportOf(without)
    expect(sections[0]?.notes).toContainEqual(expect.stringContaining('set crm.deal.object'))
    expect(sections[0]?.sentence).toBe('There are no deals.')
  })

  test('without members no owner has left, and with e-mails before their texts no side is known', async () => {
    const without = await changed(
      "DELETE FROM members; UPDATE conversations SET is_readable = NULL, is_external = NULL WHERE kind = 'mail'",
    )
    const { sections } = await reportOf(without)
    expect(sections[0]?.notes.filter(note => note.includes('member'))).toEqual([
      expect.stringMatching(
        /^Of \d+ open deals nothing says whether the owner is a member, .* sync\.resources\.$/,
      ),
    ])
    expect(sections[2]?.notes).toContainEqual(
      expect.stringMatching(/^Of \d+ conversations of the last 365 days nothing says whether/),
    )
  })

  test('what is not read is no zero: the sections that would count it say so', async () => {
    const env = { PARLEY_SYNC_RESOURCES: 'members,teams,crm_records' }
    const { sections } = await reportOf(await backfilled(untilTheEnd, { deals: 20, env }))
    const left = 'not read: sync.resources, --only or --skip leaves them out.'
    const told = sections.map(({ title, sentence, notes }) => [title, sentence, notes[0]])
    expect(told).toEqual(
      expect.arrayContaining([
        ['Activity', null, `E-mails, meetings are ${left}`],
        ['Reply times', null, `E-mails are ${left}`],
        ['Talk ratio', null, `Meetings are ${left}`],
        ['Silent deals', null, `Activities, e-mails, meetings are ${left}`],
      ]),
    )
    expect(sections[0]?.sentence).toMatch(/ open: /)
    expect(sections[1]?.rows).not.toEqual([])
  })

  test('sections whose period begins before sync.since say what they do not count', async () => {
    const end = Date.parse((await reportOf(place)).complete_as_of ?? '')
    const day = (ago: number) => utcDay(end - ago * DAY_MS)
    const told = async (since: string) => {
      const env = { PARLEY_SYNC_SINCE: since }
      const { sections } = await reportOf(await backfilled(untilTheEnd, { meetings: 30, env }))
      const note = `Nothing from before ${since} (sync.since) is counted.`
      return sections.flatMap(({ title, notes }) => (notes.includes(note) ? title : []))
    }
    expect(await Promise.all([day(20), day(200), day(900)].map(told))).toEqual([
      ['Activity', 'Reply times', 'Talk ratio'],
      ['Reply times', 'Talk ratio'],
      [],
    ])
  })

  test('changes that the tables do not have yet are said at the top', async () => {
    const late = await changed("INSERT INTO _waiting_keys (kind, key) VALUES (3, 'a'), (3, 'b')")
    const { tables } = await reportOf(late)
    expect(tables).toMatchObject({
      state: 'behind',
      waiting: 2,
      notes: [expect.stringMatching(/^2 changes are not in/)],
    })
    const [note] = (await reportOf(await changed("INSERT INTO _waiting_keys (kind, key) VALUES (3, 'a')")))
      .tables.notes
    expect(note).toMatch(/^1 change is not in/)
  })

  test('amounts are added up in the currency of reports alone', async () => {
    const converted = await changed(`
      UPDATE report_settings SET value = 'EUR' WHERE name = 'reporting.currency';
      DROP VIEW deals; CREATE VIEW "deals" /* One deal. */ AS SELECT 'd' || value AS deal_id, 'Deal' AS deal, 'Sales' AS pipeline, 'p' AS pipeline_id,
        'Talk' AS stage, 1 AS stage_position, 's' AS stage_id, iif(value > 2, 'JPY', 'USD') AS currency, 100 AS amount,
        iif(value > 2, 1, 90) AS amount_reporting, NULL AS probability, 'member' AS owner_state, 'open' AS outcome,
        1 AS open_deals, iif(value > 2, 1, 90) AS open_amount
        FROM json_each('[1,2,3]')`)
    expect((await reportOf(converted)).sections[0]?.sentence).toBe(
      '3 deals are open: 100 JPY, 200 USD. Converted, these are 181 in EUR.',
    )
  })

  test('deals of which nothing is known are counted apart, and amounts without a rate are named', async () => {
    const unknown = await changed(`
      UPDATE report_settings SET value = 'EUR' WHERE name = 'reporting.currency';
      DROP VIEW deals; CREATE VIEW "deals" /* One deal. */ AS SELECT 'd' || value AS deal_id, 'Deal' AS deal, 'Sales' AS pipeline, 'p' AS pipeline_id,
        'Talk' AS stage, 1 AS stage_position, 's' AS stage_id, 'JPY' AS currency, 5 AS amount, NULL AS amount_reporting,
        NULL AS probability, 'left' AS owner_state, iif(value > 3, 'unknown', 'open') AS outcome,
        iif(value > 3, 0, 1) AS open_deals, NULL AS open_amount
        FROM json_each('[1,2,3,4]')`)
    const [pipeline] = (await reportOf(unknown)).sections
    expect(pipeline?.sentence).toBe('3 deals are open: 15 JPY.')
    expect(pipeline?.notes).toEqual([
      '1 deal is not counted, since nothing says whether it is open.',
      'The amounts of 3 open deals are not in amount_reporting, since reporting.rates has no rate for their currency.',
      '3 open deals belong to members who have left.',
    ])
  })
})
