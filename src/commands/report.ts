import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { Argument, Option } from 'commander'
import { systemClock } from '../base/clock.ts'
import { EXIT_STATUS, StopError } from '../base/errors.ts'
import { jsonLine } from '../base/safe-text.ts'
import { replaceFile, writeFaultOf } from '../store/disk/new-files.ts'
import {
  type CommandDefinition,
  DATABASE_ONLY,
  loadCommandSettings,
  settingsOfSections,
} from './base/command.ts'

interface ReportCommandOptions {
  json?: boolean
}

export const reportCommand: CommandDefinition<ReportCommandOptions> = {
  description:
    'Writes one HTML file for a sales leader: the pipeline, activity, reply times, talk ratio, silent deals and the quality of the CRM, each with a chart, its numbers and its question in SQL. What is unknown or not counted is said next to each figure. The file needs no network and no other file. It has names of deals and people: only you can read it, unless database.mode says otherwise. An earlier report of that name is replaced; any other file is not. Only reads the database, needs no API settings and works at any time.',
  arguments: [new Argument('[file]', 'file to write, which ends in .html; default: standard output')],
  settings: settingsOfSections('database'),
  options: [new Option('--json', 'print the same figures as one JSON object on standard output')],
  examples: [
    ['parley report monday.html', 'writes the report to monday.html'],
    ['parley report --database copy.db copy.html', 'a report of a copy, without settings and a key'],
    ['parley report --json', 'the figures for other programs'],
  ],
  async run(context, input) {
    const { settings } = loadCommandSettings(context, input, DATABASE_ONLY)
    const [{ readReport }, { isReport, reportHtml }, { readWarehouse, requireWarehouse }] = await Promise.all(
      [
        import('../report/read-report.ts'),
        import('../report/report-html.ts'),
        import('../store/status/status.ts'),
      ],
    )
    const { stdout, cwd } = context
    const [name] = input.args
    const { json = false } = input.options
    const { path } = settings.database
    refuseCombination({ name, json, isTerminal: stdout.isTTY === true })
    requireWarehouse(path)
    const file = name === undefined ? undefined : resolve(cwd, name)
    if (file !== undefined) refuseFile(file, path, isReport)
    const report = readWarehouse(path, db => readReport(db, systemClock().now()))
    if (json) stdout.write(jsonLine(report))
    else if (file === undefined) stdout.write(reportHtml(report))
    else {
      writeReport(file, reportHtml(report), settings.database.mode)
      stdout.write(`Wrote ${name}. ${report.completeness}\n`)
    }
    return EXIT_STATUS.done
  },
}

/** @throws StopError (exit status 64) for `--json` with a file, and for HTML on a terminal */
function refuseCombination(given: { name: string | undefined; json: boolean; isTerminal: boolean }): void {
  if (given.json && given.name !== undefined)
    throw refusal(
      '--json prints the figures on standard output and takes no file',
      'Leave the file or --json out.',
    )
  if (!given.json && given.name === undefined && given.isTerminal)
    throw refusal(
      'The report is HTML, and standard output is a terminal',
      'Name a file: parley report report.html',
    )
}

const HTML_FILE = /\.html?$/i

/**
 * Refuses a file that is no report, before the slow read of the database.
 * @throws StopError (exit status 64) for such a file
 */
function refuseFile(file: string, database: string, isReport: (html: string) => boolean): void {
  if (!HTML_FILE.test(file) || file === database)
    throw refusal(
      `${file} is no name of a report: expected one that ends in .html`,
      'Choose another name, such as report.html.',
    )
  const found = statSync(file, { throwIfNoEntry: false })
  if (found === undefined || (found.isFile() && (found.size === 0 || isReport(readFileSync(file, 'utf8')))))
    return
  throw refusal(
    `${file} exists and is not a report of parley; it was not changed`,
    'Choose another name, or remove it yourself.',
  )
}

const refusal = (message: string, hint: string) =>
  new StopError(message, { code: 'report-refused', hint, exitStatus: EXIT_STATUS.usage })

/** @throws StopError (exit status 73) when the file cannot be written */
function writeReport(file: string, html: string, mode: number): void {
  try {
    replaceFile(file, html, mode)
  } catch (error) {
    const { why, mend } = writeFaultOf(error)
    throw new StopError(`${file} cannot be written: ${why}`, {
      code: 'report-unwritable',
      hint: `${mend}, or choose another file.`,
      cause: error,
      exitStatus: EXIT_STATUS.databaseUnavailable,
    })
  }
}
