import { wholeNumber } from '../../base/whole-number.ts'
import { nextDue, RUN_LABELS, RUN_NAMES, type RunName, runName, stateCounts } from '../../health/wording.ts'
import type { Overview, RecentRun } from '../../store/status/overview.ts'
import type { ResourceReport } from '../../store/status/report.ts'
import type { ResourceDay } from '../../store/sync/days.ts'
import { fitTable, type RankedColumn } from '../../terminal/table.ts'
import { cutToWidth, textWidth } from '../../terminal/text-width.ts'
import { ageText, dueText } from '../../terminal/wording.ts'
import { failingFirst } from './page.ts'
import { type DisplayScreen, painted } from './view.ts'

export interface ResourceTable {
  /** The titles, then a line for each resource. */
  lines: readonly string[]
  /** In the order of the lines. */
  resources: readonly ResourceReport[]
}

/** The strip of the last runs gets at least this width, and at most `MOST_RUNS`. */
const LEAST_RUNS = 9
const MOST_RUNS = 24

/** All resources, the failing ones first, with as many columns as fit. */
export function resourceTable(
  reports: readonly ResourceReport[],
  { runs, today }: Pick<Overview, 'runs' | 'today'>,
  screen: DisplayScreen,
): ResourceTable {
  const { columns, now } = screen
  const resources = failingFirst(reports)
  const draw = (most: number, more: readonly RankedColumn<ResourceReport>[] = []) =>
    fitTable([...stateColumns(now), runColumn(runs, most), ...more], resources, columns).lines
  // The strip takes the rest of the width up to its full length, before further columns.
  const left = columns - Math.max(...draw(LEAST_RUNS).map(textWidth))
  const lines = draw(Math.min(MOST_RUNS, LEAST_RUNS + Math.max(0, left)), dayColumns(today))
  return { lines: lines.map(line => cutToWidth(line, columns)), resources }
}

function stateColumns(now: number): RankedColumn<ResourceReport>[] {
  const count = (title: string, value: (row: ResourceReport) => number) => ({
    title,
    align: 'right' as const,
    cell: (row: ResourceReport) => wholeNumber(value(row)),
  })
  const counted = (title: string, value: (row: ResourceReport) => number) => ({
    ...count(title, value),
    isEmpty: (row: ResourceReport) => value(row) === 0,
  })
  return [
    { title: 'resource', cell: ({ resource }) => resource },
    { title: 'state', cell: ({ state }) => state },
    { ...count('rows', row => row.rows_live), rank: 1 },
    { title: 'fresh', align: 'right', cell: row => ageText(row.fresh_as_of, now), rank: 2 },
    { title: 'complete', align: 'right', cell: row => ageText(row.complete_as_of, now), rank: 3 },
    { ...counted('waiting', row => row.pending_tasks), rank: 4 },
    { ...counted('rejected', row => row.rejected), rank: 5 },
    {
      title: 'next due',
      cell: row => dueText(nextDue(row), now),
      isEmpty: row => nextDue(row) === null,
      rank: 7,
    },
  ]
}

function runColumn(runs: Overview['runs'], most: number): RankedColumn<ResourceReport> {
  const of = ({ resource }: ResourceReport) => runs.get(resource) ?? []
  return {
    title: 'last runs',
    align: 'right',
    cell: row => of(row).slice(-most).map(runCharacter).join(''),
    isEmpty: row => of(row).length === 0,
    rank: 6,
  }
}

/** Each outcome has a different character. */
const RUN_CHARACTERS: Readonly<Record<RunName, string>> = {
  complete: '=',
  failed: 'F',
  stopped: 's',
  interrupted: 'K',
  unavailable: '-',
  running: '>',
}

const runCharacter = (run: RecentRun) => RUN_CHARACTERS[runName(run)]

/** What the characters mean that occur; empty when there was no run. */
export function runLegend(runs: Overview['runs'], { columns }: DisplayScreen): string[] {
  const found = new Set([...runs.values()].flatMap(of => of.map(runName)))
  const meanings = RUN_NAMES.filter(name => found.has(name)).map(
    name => `${RUN_CHARACTERS[name]} ${RUN_LABELS[name]}`,
  )
  return meanings.length === 0
    ? []
    : [cutToWidth(`Last runs, the newest last: ${meanings.join(', ')}`, columns)]
}

/** Rows written on this day, on a wide terminal. */
function dayColumns(today: Overview['today']): RankedColumn<ResourceReport>[] {
  const days = new Map<string, ResourceDay>(today.map(day => [day.resource, day]))
  const written = (title: string, figure: 'rows_new' | 'rows_changed' | 'rows_deleted') => ({
    title,
    align: 'right' as const,
    cell: ({ resource }: ResourceReport) => wholeNumber(days.get(resource)?.[figure] ?? 0),
    isEmpty: ({ resource }: ResourceReport) => (days.get(resource)?.[figure] ?? 0) === 0,
    rank: 8,
  })
  return [
    written('new today', 'rows_new'),
    written('changed today', 'rows_changed'),
    written('deleted today', 'rows_deleted'),
  ]
}

const STATE_STYLES: Readonly<Partial<Record<ResourceReport['state'], 'red' | 'yellow' | 'cyan' | 'dim'>>> = {
  failing: 'red',
  'on hold': 'yellow',
  waiting: 'yellow',
  backfilling: 'cyan',
  unavailable: 'dim',
}

/** @param room how many lines there may be; resources that do not fit are only counted */
export function resourceLines(
  { lines: [titles = '', ...lines], resources }: ResourceTable,
  screen: DisplayScreen,
  room: number,
): string[] {
  const shown = lines.length + 1 <= room ? lines.length : Math.max(0, room - 2)
  const rows = lines.slice(0, shown).map((line, index) => {
    const style = STATE_STYLES[resources[index]?.state ?? 'ok']
    return style === undefined ? line : painted(style, line, screen)
  })
  const hidden = resources.slice(shown)
  const more =
    hidden.length === 0
      ? []
      : [cutToWidth(`… and ${hidden.length} more: ${stateCounts(hidden)}`, screen.columns)]
  return [painted('dim', titles, screen), ...rows, ...more].slice(0, room)
}
