import { resolve } from 'node:path'
import { Option } from 'commander'
import type { LearnedRate } from '../api/pace.ts'
import { systemClock } from '../clock.ts'
import { EXIT_STATUS } from '../errors.ts'
import type { Status, StatusRow } from '../store/status.ts'
import type { WriterState } from '../store/writer.ts'
import { type CommandDefinition, settingsFor, settingsIn } from './command.ts'
import { remark, table } from './table.ts'
import { ago, bytes, perSecond, wholeNumber } from './wording.ts'

export interface StatusOptions {
  json?: boolean
}

export const statusCommand: CommandDefinition<StatusOptions> = {
  description:
    'Shows what is in the warehouse and how fresh it is, resource by resource, who writes it now, and what was learned of the rate that the API allows. It only reads, needs no API settings, and works at any time.',
  settings: settingsIn('database'),
  options: [new Option('--json', 'print one JSON object on standard output, with exact instants')],
  examples: [
    ['parley status', 'a table'],
    ['parley status --database /var/lib/parley/acme.db --json', 'the same for programs'],
  ],
  async run(context, input) {
    const { settings } = settingsFor(context, input, { requireApi: false })
    const [{ readWarehouse }, { writerOf }] = await Promise.all([
      import('../store/status.ts'),
      import('../store/writer.ts'),
    ])
    const status = readWarehouse(resolve(context.cwd, settings.database.path))
    const report: Report = { status, writer: writerOf(status), rate: learnedRate(status) }
    const { stdout } = context
    if (input.options.json) stdout.write(`${JSON.stringify(forPrograms(report))}\n`)
    else stdout.write(forPeople(report, { now: systemClock().now(), columns: stdout.columns ?? 100 }))
    return EXIT_STATUS.done
  },
}

interface Report {
  status: Status
  /** Undefined when no process ever wrote it. */
  writer: WriterState | undefined
  rate: LearnedRate | undefined
}

/** As the process that learned it left it behind when it ended. */
function learnedRate({ meta }: Status): LearnedRate | undefined {
  const text = meta.get('learned_rate')
  return text === undefined ? undefined : (JSON.parse(text) as LearnedRate)
}

/** What `--json` prints. The resources are the rows of `sync_status` as they are. */
function forPrograms({ status, writer, rate }: Report) {
  const { database, resources } = status
  return {
    database: database.path,
    database_bytes: database.bytes,
    wal_bytes: database.walBytes,
    writer: writer ?? null,
    learned_rate: rate
      ? {
          requests_per_second: rate.ratePerSecond,
          concurrency: rate.concurrency,
          was_refused: rate.limited,
        }
      : null,
    resources,
  }
}

interface Paper {
  now: number
  columns: number
}

function forPeople({ status, writer, rate }: Report, { now, columns }: Paper): string {
  const { database, resources } = status
  const number = (title: string, value: (row: StatusRow) => number) => ({
    title,
    align: 'right' as const,
    cell: (row: StatusRow) => wholeNumber(value(row)),
  })
  const rows = table<StatusRow>(
    [
      { title: 'resource', cell: ({ resource }) => resource },
      { title: 'state', cell: ({ state }) => state },
      number('rows', row => row.rows_live),
      { ...number('deleted', row => row.rows_deleted), isIdle: row => row.rows_deleted === 0 },
      { ...number('pending', row => row.pending_tasks), isIdle: row => row.pending_tasks === 0 },
      { ...number('rejected', row => row.rejected), isIdle: row => row.rejected === 0 },
      { title: 'newest', cell: row => ago(row.newest_at, now) },
      { title: 'fresh as of', cell: row => ago(row.fresh_as_of, now) },
      { title: 'complete as of', cell: row => ago(row.complete_as_of, now) },
    ],
    resources,
  )
  const reasons = resources.flatMap(({ resource, reason }) =>
    reason === null ? [] : remark(resource, reason, columns),
  )
  const files = `${database.path}: ${bytes(database.bytes)}, and ${bytes(database.walBytes)} in its -wal`
  return `${[...rows, ...reasons, files, writing(writer, now), allowed(rate)].join('\n')}\n`
}

function writing(writer: WriterState | undefined, now: number): string {
  if (writer === undefined) return 'No process writes it.'
  const who = `parley ${writer.command}, process ${writer.pid}`
  const since = `${ago(writer.since, now)} (${writer.since})`
  if (writer.running) return `Written now by ${who}, since ${since}.`
  if (writer.died) {
    return `No process writes it: the last, ${who}, begun ${since}, was cut off. The next goes on where it stopped.`
  }
  return `No process writes it now. The last was ${who}, begun ${since}.`
}

/** From here on the rate is no limit any more. */
const UNPACED = 1000

function allowed(rate: LearnedRate | undefined): string {
  if (rate === undefined) return 'What rate the API allows is not known yet.'
  const { ratePerSecond, concurrency, limited } = rate
  if (!limited) return 'The API has not refused a request as too many (429) so far.'
  const speed = ratePerSecond >= UNPACED ? '' : `${perSecond(ratePerSecond)} requests/s and `
  return `The API has refused requests as too many (429); what it takes is about ${speed}${wholeNumber(concurrency)} at once.`
}
