import { EXIT_STATUS } from '../base/errors.ts'
import { nameIn, sectionOf } from '../config/settings.ts'
import type { Sqlite } from '../store/database/sqlite-types.ts'
import { foreignReportObjects, reportTablesIn } from '../store/reporting/derived-tables.ts'
import { type GuessedSetting, guessedSettings } from '../store/reporting/guessed-settings.ts'
import {
  type ReportConfig,
  reportProblems,
  settingsNotTaken,
  storedReports,
} from '../store/reporting/report-settings.ts'
import { waitingKeys } from '../store/reporting/waiting-keys.ts'
import { countText, dateTimeText, isAre } from '../terminal/wording.ts'
import type { CheckFindings, Finding } from './finding.ts'

/**
 * Findings about the tables for reports: settings that fit nothing in the CRM, guesses, and guesses that changed of
 * late.
 */
export function* reportFindings(
  db: Sqlite,
  line: CheckFindings,
  { reports }: { reports?: ReportConfig } = {},
): Generator<Finding> {
  const foreign = foreignReportObjects(db)
  const { deals, conversations } = reportTablesIn(db)
  if (foreign.length > 0)
    yield line.wrong(
      `there are no tables and views for reports${deals ? ' about conversations' : ''}, since somebody else has made ${foreign.join(', ')}`,
      EXIT_STATUS.settings,
      'Rename these tables or views, then run parley backfill or restart parley daemon.',
    )
  const stored = deals ? storedReports(db) : undefined
  if (!stored) return
  const notTaken = reports ? settingsNotTaken(db, reports) : []
  if (notTaken.length > 0)
    yield line.warning(
      `the tables for reports were computed with other settings: ${notTaken.join(', ')}`,
      'Reload or restart parley daemon, or run parley backfill. Then run parley doctor again: it names settings that fit nothing.',
    )
  for (const problem of reportProblems(db))
    yield line.wrong(problem, EXIT_STATUS.settings, 'Correct the setting, or remove it to let parley guess.')
  for (const { name, before, after, at } of stored.changes)
    yield line.warning(
      `${name} is ${after ?? 'none'} since ${dateTimeText(at)}; before it was ${before ?? 'none'}`,
      'Reports from before count other values. If this is right, nothing is to be done.',
    )
  if (stored.unknownFields.length > 0)
    yield line.warning(
      `no field of ${stored.deals} is known for ${stored.unknownFields.join(', ')}`,
      'Name each field in the settings, or write "none" for one that there is not.',
    )
  if (stored.unknownStages.length > 0)
    yield line.warning(
      `nothing says whether deals of these stages are won or lost: ${stored.unknownStages.join(', ')}`,
      'Name those of won deals in crm.deal.won, and those of lost deals in crm.deal.lost.',
    )
  const waiting = conversations ? waitingKeys(db) : 0
  if (waiting > 0)
    yield line.note(
      `${countText(waiting, 'change')} ${isAre(waiting)} not in the tables for reports yet`,
      'The daemon follows them every half minute, and a backfill at its end.',
    )
  const guesses = guessedSettings(db)
  if (guesses.length > 0)
    yield line.note(`guessed, as lines for the settings file:\n${settingLines(guesses).join('\n')}`, GUESSED)
}

const GUESSED =
  'To decide them yourself, put such lines under their sections in the settings file. "none" is for a field that there is not. parley init --stdout prints them with their reasons.'

/** The guesses as lines of TOML: each section with its settings. */
function settingLines(guesses: readonly GuessedSetting[]): string[] {
  const sections = [...new Set(guesses.map(({ key }) => sectionOf(key)))]
  return sections.flatMap(section => [
    `[${section}]`,
    ...guesses
      .filter(({ key }) => sectionOf(key) === section)
      .map(({ key, value }) => `${nameIn(key)} = ${value}`),
  ])
}
