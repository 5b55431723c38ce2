import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { isoInstant, MINUTE_MS } from '../../../src/base/clock.ts'
import { EXIT_STATUS, StopError } from '../../../src/base/errors.ts'
import { statusDisplay } from '../../../src/commands/status/display.ts'
import type { DisplayScreen, WatchedStatus } from '../../../src/commands/status/view.ts'
import { RESOURCE_NAMES } from '../../../src/declare/resource-names.ts'
import type { Overview, RecentRun, TrafficSpan } from '../../../src/store/status/overview.ts'
import type { ResourceReport, StatusReport } from '../../../src/store/status/report.ts'
import { styledText } from '../../../src/terminal/colours.ts'
import { textWidth } from '../../../src/terminal/text-width.ts'
import { NOW, report, SINCE } from '../../health/report.ts'

const SCREEN: DisplayScreen = { columns: 79, rows: 24, colour: false, now: NOW }

const run = (outcome: RecentRun['outcome']): RecentRun => ({
  started_at: SINCE,
  ended_at: outcome === null ? null : SINCE,
  outcome,
  requests: 1,
  rows_changed: 1,
  rows_deleted: 0,
})

const minute = (place: number, figures: Partial<TrafficSpan> = {}): TrafficSpan => ({
  at: isoInstant(NOW - (60 - place) * MINUTE_MS),
  minutes: 1,
  requests: 30,
  throttled: 0,
  errors: 0,
  rows: 100,
  rate: 9.8,
  in_flight: 4,
  paused_seconds: 0,
  ...figures,
})

/** An hour of 30 requests per minute, with these minutes. */
const hourWith = (minutes: Readonly<Record<number, Partial<TrafficSpan>>>) =>
  Array.from({ length: 60 }, (_, place) => minute(place, minutes[place]))

function overview(changes: Partial<Overview> = {}): Overview {
  return {
    runs: new Map(RESOURCE_NAMES.map(name => [name, Array.from({ length: 24 }, () => run('complete'))])),
    coverage: { months: [], rows: [] },
    traffic: { hour: hourWith({}), day: [], week: [] },
    today: [],
    drift: [],
    guesses: 0,
    ...changes,
  }
}

function draw(
  { of = report(), seen = overview() }: { of?: StatusReport; seen?: Overview },
  screen: Partial<DisplayScreen> = {},
): string[] {
  return statusDisplay({ state: 'read', report: of, overview: seen, at: NOW }, { ...SCREEN, ...screen })
}

const REFUSED = {
  kind: 'refused',
  reason: 'The API answers 403',
  since: SINCE,
  next_try_at: SINCE,
} as const
const FAILING = { state: 'failing', reason: 'The API answers 500', failing_since: SINCE } as const
const LOADING: Partial<ResourceReport> = {
  state: 'backfilling',
  fresh_as_of: null,
  complete_as_of: null,
}

const HOSTILE = '\u001b[2J\u202e漢字👩‍👩‍👧‍👦'.repeat(40)

const STATES: Readonly<Record<string, StatusReport>> = {
  'an up-to-date warehouse': report(),
  'a warehouse that loads its history': report({}, LOADING),
  'an API that is away': report({ api: { ...REFUSED, kind: 'silent' } }, FAILING),
  'an API that refuses access': report({ api: REFUSED }, FAILING),
  'deletions that are held back': report({}, { ...FAILING, deletions_held_since: SINCE }),
  'many problems': report({
    resources: report().resources.map(row => ({ ...row, ...FAILING, rejected: 3, pending_tasks: 12_345 })),
  }),
  'hostile texts': report({ api: { ...REFUSED, reason: HOSTILE }, database: `/data/${HOSTILE}.db` }, FAILING),
}

const SIZES = [
  [80, 24],
  [40, 24],
  [250, 60],
  [132, 43],
  [20, 10],
  [80, 3],
  [1, 1],
] as const

describe.each(Object.entries(STATES))('the display of %s', (_, of) => {
  test.each(SIZES)('fits %i × %i', (columns, rows) => {
    for (const colour of [false, true]) {
      const lines = draw({ of }, { columns, rows, colour })
      expect(lines.length).toBeLessThanOrEqual(rows)
      const plain = lines.map(stripVTControlCharacters)
      expect(plain.filter(line => textWidth(line) > columns)).toEqual([])
      expect(plain.join('')).not.toMatch(/[\p{Cc}\u202e]/u)
      // The verdict is on every screen.
      expect(lines.length).toBeGreaterThan(0)
    }
  })

  test('has the same words without colours', () => {
    expect(draw({ of }, { colour: true }).map(stripVTControlCharacters)).toEqual(draw({ of }))
  })
})

describe('the display on 80 × 24', () => {
  test('an up-to-date warehouse has a verdict, a table, requests, the day and the file', () => {
    const today = [
      { day: '2026-03-04', resource: 'messages', rows_new: 5, rows_changed: 2, rows_deleted: 1 },
    ] as const
    expect(draw({ seen: overview({ today }) })).toMatchInlineSnapshot(`
      [
        "Up to date: everything published before 11:59:00 UTC is here",
        "Nothing to do.",
        "resource             state  rows  fresh  complete                 last runs",
        "members              ok       10  1 min     1 min  ========================",
        "teams                ok       10  1 min     1 min  ========================",
        "collections          ok       10  1 min     1 min  ========================",
        "collection_meetings  ok       10  1 min     1 min  ========================",
        "activities           ok       10  1 min     1 min  ========================",
        "messages             ok       10  1 min     1 min  ========================",
        "message_bodies       ok       10  1 min     1 min  ========================",
        "meetings             ok       10  1 min     1 min  ========================",
        "transcripts          ok       10  1 min     1 min  ========================",
        "playbook_results     ok       10  1 min     1 min  ========================",
        "playbooks            ok       10  1 min     1 min  ========================",
        "crm_objects          ok       10  1 min     1 min  ========================",
        "… and 5 more: 5 ok",
        "Last runs, the newest last: = complete",
        "Requests/min   ████████████████████████████████████████████████████████████",
        "Last hour: 1,800 requests, 0 refused as too many, 0 failed, 6,000 rows written,",
        "0 s of asked waits; at most 30 in a minute",
        "No limit of the API is known yet.",
        "Today (UTC): 5 rows new, 2 changed, 1 deleted",
        "Database: 1 bytes, and 0 bytes in its -wal: /data/parley.db",
        "Read 0 s ago. q or Ctrl-C ends.",
      ]
    `)
  })

  test('the verdict has its colour and its word', () => {
    const styles = [
      [report(), 'green', 'Up to date: '],
      [report({}, LOADING), 'cyan', 'Loading history: 16 of 17 '],
      [report({}, FAILING), 'yellow', 'Waiting since '],
      [report({ api: REFUSED }), 'red', 'Needs you since '],
    ] as const
    for (const [of, style, words] of styles) {
      const [plain = ''] = draw({ of })
      expect(plain.startsWith(words)).toBe(true)
      expect(draw({ of }, { colour: true })[0]).toBe(styledText(['bold', style], plain))
    }
  })

  test('a first read has a progress bar', () => {
    expect(draw({ of: report({}, LOADING) })[2]).toBe(`[${'='.repeat(56)}>${' '.repeat(3)}]  94 %`)
  })

  test('what to do follows the verdict, and each further problem has a paragraph', () => {
    const held = report({ api: { ...REFUSED, kind: 'asked-to-wait' } }, { deletions_held_since: SINCE })
    expect(draw({ of: held }).slice(0, 7)).toEqual([
      'Needs you since 11:40:00 UTC: An unusual number of members is missing at the',
      'API; parley has deleted none of them (and 1 more problem)',
      'Look in the product. If they are gone there, do nothing: a later complete read',
      'confirms it. If not, correct the key or the workspace before. To delete them',
      'now: parley accept-deletions members.',
      'Waiting: The API asked parley to wait, for 20 min: The API answers 403. Next',
      '  try: 11:40:00 UTC (now). Nothing to do: the wait ends by itself.',
    ])
  })

  test('problems and resources that do not fit are counted', () => {
    const lines = draw({ of: STATES['many problems'] ?? report() })
    expect(lines).toContain('… and 12 more problems')
    expect(lines.filter(line => line.startsWith('… and')).at(-1)).toMatch(/^… and \d+ more: \d+ failing$/)
    expect(lines.join('\n')).toContain('12,345')
  })

  test('a failing resource is the first of the table', () => {
    const lines = draw({ of: report({ resources: report().resources.toReversed() }, {}) })
    const titles = lines.findIndex(line => line.startsWith('resource '))
    expect(lines[titles + 1]).toMatch(/^integrations /)
    const failing = draw({ of: report({}, FAILING) })
    expect(failing[failing.findIndex(line => line.startsWith('resource ')) + 1]).toMatch(/^members +failing /)
  })

  test('each outcome of a run has a character, and the newest run is the last', () => {
    const outcomes = ['failed', 'stopped', 'interrupted', 'unavailable', 'complete', null] as const
    const lines = draw({ seen: overview({ runs: new Map([['members', outcomes.map(run)]]) }) })
    expect(lines.find(line => line.startsWith('members '))).toMatch(/ FsK-=>$/)
    expect(lines).toContain('Last runs, the newest last: = complete, F failed, s stopped, K killed, - unava…')
  })

  test('the requests of each minute are blocks, and refusals and pauses are visible below them', () => {
    const hour = hourWith({
      0: { minutes: 0, requests: 0 },
      1: { requests: 0 },
      2: { requests: 240, throttled: 3 },
      59: { requests: 120, errors: 1 },
    })
    const lines = draw({ seen: overview({ traffic: { hour, day: [], week: [] } }) })
    const chart = lines.findIndex(line => line.startsWith('Requests/min'))
    expect(lines.slice(chart, chart + 3)).toEqual([
      `Requests/min    .█${'▁'.repeat(56)}▄`,
      `refused/failed   x${' '.repeat(56)}x`,
      'Last hour: 2,040 requests, 3 refused as too many, 1 failed, 6,000 rows written,',
    ])
  })
})

describe('other sizes', () => {
  test('a narrow terminal keeps resource, state and as many columns as fit', () => {
    const lines = draw({}, { columns: 40 })
    expect(lines.find(line => line.startsWith('resource'))).toMatch(/^resource +state +rows +fresh$/)
  })

  test('a wide terminal also has what was written today, and blank lines between the parts', () => {
    const today = [
      { day: '2026-03-04', resource: 'members', rows_new: 5, rows_changed: 2, rows_deleted: 1 },
    ] as const
    const lines = draw({ seen: overview({ today }) }, { columns: 200, rows: 60 })
    expect(lines[2]).toBe('')
    expect(lines[3]).toMatch(/ last runs +new today +changed today +deleted today$/)
    expect(lines[4]).toMatch(/^members .* ={24} +5 +2 +1$/)
  })
})

describe('the display without a report', () => {
  const without = (watched: WatchedStatus) => statusDisplay(watched, SCREEN)

  test('before the first read it says what is read', () => {
    expect(without({ state: 'unread', path: '/data/parley.db' })).toEqual([
      'Reading /data/parley.db',
      'q or Ctrl-C ends.',
    ])
  })

  test('a warehouse that cannot be read is a verdict with what to do', () => {
    const error = new StopError('There is no warehouse at /data/parley.db yet', {
      code: 'no-database',
      hint: 'Run parley backfill to create it.',
      exitStatus: EXIT_STATUS.databaseUnavailable,
    })
    expect(without({ state: 'unreadable', error, since: NOW })).toEqual([
      'Needs you since 12:00:00 UTC: There is no warehouse at /data/parley.db yet',
      'Run parley backfill to create it.',
      'parley tries again every few seconds. q or Ctrl-C ends.',
    ])
  })
})
