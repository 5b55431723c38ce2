import { isoInstant } from '../base/clock.ts'
import { errorCode } from '../base/errors.ts'
import type { ResourceName } from '../declare/resource-names.ts'
import { type Question, readQuestions } from '../dictionary/questions.ts'
import { completeSentence, fromBefore } from '../health/completeness.ts'
import type { Sqlite } from '../store/database/sqlite-types.ts'
import { onlyRow } from '../store/database/statements.ts'
import { workspaceOf } from '../store/file/workspace.ts'
import { appliedMigrations, newestMigration } from '../store/migrations/journal.ts'
import { foreignReportObjects, reportTablesIn } from '../store/reporting/derived-tables.ts'
import { type ReportGuess, readGuesses } from '../store/reporting/guessed-settings.ts'
import { reportProblems } from '../store/reporting/report-settings.ts'
import { waitingKeys } from '../store/reporting/waiting-keys.ts'
import { type Completeness, readCompleteness } from '../store/status/status.ts'
import { META, readMeta } from '../store/sync/meta.ts'
import { countText, isAre } from '../terminal/wording.ts'
import {
  type ChartPlan,
  REPORT_SECTIONS,
  type ReportFacts,
  type ReportRow,
  type SectionPlan,
} from './sections.ts'

/** What `parley report --json` prints. All figures are of one instant. */
export interface ReportFigures {
  /** Null until the first rows are stored. */
  workspace: string | null
  made_at: string
  /** Null while history is loading. */
  complete_as_of: string | null
  /** The same as a sentence, with the resources that it is about and what `sync.since` leaves out. */
  completeness: string
  /** The time zone of the days in the report; null where there are no tables for reports. */
  time_zone: string | null
  tables: ReportTablesState
  /** Guesses at what the settings do not say, each with its reason. */
  guesses: readonly ReportGuess[]
  sections: readonly ReportSection[]
}

/** `up to date`, or why some figures may be missing or late. */
export interface ReportTablesState {
  state: 'up to date' | 'behind' | 'missing'
  /** The number of changes that are not in the tables yet. */
  waiting: number
  /** Sentences for people. */
  notes: readonly string[]
}

export interface ReportSection {
  /** The name of the shipped question. */
  question: string
  /** The question in words. */
  asks: string
  title: string
  /** A sentence with the main figure; null where there is none. */
  sentence: string | null
  /** Why there are no rows, and what to do; null where the question was answered. */
  missing: string | null
  /** What is unknown or not counted. */
  notes: readonly string[]
  /** Names of columns, also where there is no row. */
  columns: readonly string[]
  rows: readonly ReportRow[]
  sql: string
}

/** Reads the figures of a warehouse. Call it in a transaction. @param now ms since the epoch */
export function readReport(db: Sqlite, now: number): ReportFigures {
  const questions = new Map(readQuestions().map(question => [question.name, question]))
  const lacks = absences(db)
  const completeness = readCompleteness(db)
  const facts: ReportFacts = {
    hasDeals: lacks.deals !== undefined || readSetting(db, 'crm.deal.object') !== null,
    currency: lacks.deals === undefined ? readSetting(db, 'reporting.currency') : null,
    since: completeness.since,
  }
  const sections = REPORT_SECTIONS.map(plan => {
    const { question: asks = '', sql = '', parameters = [] } = questions.get(plan.question) ?? {}
    const { question, title, reads } = plan
    const asked = { sql, parameters, facts, completeness, lacking: lacks[reads] }
    return { question, asks, title, ...answer(db, plan, asked), sql }
  })
  return {
    workspace: workspaceOf(db)?.id ?? null,
    made_at: isoInstant(now),
    complete_as_of: completeness.complete_as_of,
    completeness: completeSentence(completeness),
    time_zone: lacks.deals === undefined ? readSetting(db, 'reporting.time_zone') : null,
    tables: readTablesState(db, lacks),
    guesses: readGuesses(db),
    sections,
  }
}

interface SectionContext extends Pick<Question, 'sql' | 'parameters'> {
  facts: ReportFacts
  completeness: Completeness
  /** Why the tables are missing. */
  lacking: string | undefined
}

type SectionAnswer = Pick<ReportSection, 'sentence' | 'missing' | 'notes' | 'columns' | 'rows'>

const NOTHING = { sentence: null, notes: [], columns: [], rows: [] }

function answer(
  db: Sqlite,
  plan: SectionPlan,
  { sql, parameters, facts, completeness, lacking }: SectionContext,
): SectionAnswer {
  if (lacking !== undefined) return { ...NOTHING, missing: lacking }
  try {
    const statement = db.prepare<unknown[], ReportRow>(sql)
    const columns = statement.columns().map(({ name }) => name)
    const rows = statement.all()
    const unread = unreadNote(plan, completeness)
    const hasFigures = rows.some(row => plan.charts.some(chart => hasFigure(chart, row)))
    return {
      // A zero would only count what was not read.
      sentence: unread === undefined || hasFigures ? plan.headline(rows, facts) : null,
      missing: null,
      notes: [
        ...[unread, sinceNote(db, plan, { parameters, completeness })].filter(note => note !== undefined),
        ...notesOf(db, plan, { rows, facts }),
      ],
      columns,
      rows,
    }
  } catch (error) {
    if (errorCode(error) !== 'SQLITE_ERROR') throw error
    return {
      ...NOTHING,
      missing: `The question failed: ${error instanceof Error ? error.message : error}. Run parley backfill, or restart parley daemon, so that this version upgrades the file.`,
    }
  }
}

function hasFigure(chart: ChartPlan, row: ReportRow): boolean {
  if (chart.kind === 'bars') return chart.has(row)
  const columns = chart.value === undefined ? Object.keys(chart.names) : [chart.value]
  return columns.some(column => Number(row[column] ?? 0) !== 0)
}

/** What the section counts and parley does not read, as a sentence; undefined when it reads all of it. */
function unreadNote({ counts = {} }: SectionPlan, { chosen }: Completeness): string | undefined {
  const unread = Object.entries(counts).flatMap(([resource, words]) =>
    chosen.includes(resource as ResourceName) ? [] : words,
  )
  if (unread.length === 0) return undefined
  const words = unread.join(', ')
  return `${words.charAt(0).toUpperCase()}${words.slice(1)} are not read: sync.resources, --only or --skip leaves them out.`
}

/** What `sync.since` leaves out of the period of the section, as a sentence. */
function sinceNote(
  db: Sqlite,
  { counts }: SectionPlan,
  { parameters, completeness: { since } }: Pick<SectionContext, 'parameters' | 'completeness'>,
): string | undefined {
  const period = parameters.find(({ name }) => name === 'period')
  if (counts === undefined || period === undefined || since === null) return undefined
  const begins = `SELECT 1 FROM periods WHERE period = ${period.value} AND from_day < ?`
  const isCut = db.prepare(begins).get(since) !== undefined
  return isCut ? `Nothing ${fromBefore(since)} is counted.` : undefined
}

function notesOf(
  db: Sqlite,
  { notes }: SectionPlan,
  { rows, facts }: { rows: readonly ReportRow[]; facts: ReportFacts },
): string[] {
  return notes.flatMap(note => {
    const [count = 0, of = 0] =
      'sql' in note ? onlyRow(db.prepare<unknown[], number[]>(note.sql).raw()) : [note.count(rows)]
    return count > 0 ? note.says(count, of, facts) : []
  })
}

/** Why the tables for deals or conversations are missing; undefined where they exist. */
type Absences = Readonly<Record<SectionPlan['reads'], string | undefined>>

function absences(db: Sqlite): Absences {
  const present = reportTablesIn(db)
  const foreign = foreignReportObjects(db)
  const why =
    foreign.length > 0
      ? `There are no tables for this in the file, since somebody else has made ${foreign.join(', ')}. Rename these tables or views, then run parley backfill or restart parley daemon.`
      : isOlder(db)
        ? 'The file was written by an older version of parley, without the tables for this. Run parley backfill or parley daemon with this version, which upgrades it.'
        : 'The tables for this are not made yet. A backfill makes them at its end, and the daemon soon after its start.'
  return {
    // The tables are empty from the migration on. The first settings fill the calendar.
    deals: present.deals && hasCalendar(db) ? undefined : why,
    conversations: present.conversations && readMeta(db, META.reportRules) !== undefined ? undefined : why,
  }
}

const hasCalendar = (db: Sqlite): boolean => db.prepare('SELECT 1 FROM calendar').get() !== undefined

const isOlder = (db: Sqlite): boolean => !appliedMigrations(db).includes(newestMigration())

function readTablesState(db: Sqlite, lacks: Absences): ReportTablesState {
  const missing = [...new Set(Object.values(lacks).flatMap(why => why ?? []))]
  const waiting = lacks.conversations === undefined ? waitingKeys(db) : 0
  const problems = lacks.deals === undefined ? reportProblems(db) : []
  const late = `${countText(waiting, 'change')} ${isAre(waiting)} not in the tables for reports yet. The daemon follows them every half minute, and a backfill at its end.`
  return {
    state: missing.length > 0 ? 'missing' : waiting > 0 ? 'behind' : 'up to date',
    waiting,
    notes: [
      ...missing,
      ...(waiting > 0 ? [late] : []),
      ...problems.map(problem => `A setting fits nothing: ${problem}`),
    ],
  }
}

const readSetting = (db: Sqlite, name: string): string | null =>
  db
    .prepare<unknown[], string | null>('SELECT value FROM report_settings WHERE name = ?')
    .pluck()
    .get(name) ?? null
