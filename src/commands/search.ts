import { resolve } from 'node:path'
import { Argument, Option } from 'commander'
import { instant } from '../config-kinds.ts'
import { EXIT_STATUS, StopError } from '../errors.ts'
import { jsonLine } from '../harmless.ts'
import { isDay } from '../instant.ts'
import { nearest } from '../nearest.ts'
import { SEARCH_KINDS, type SearchKind, type SearchQuestion, termsOf } from '../store/search-query.ts'
import { type CommandDefinition, mayColour, READING, settingsFor, settingsIn } from './command.ts'
import { forPrograms, hitOf, searchPage } from './search-page.ts'
import { counted } from './wording.ts'

export interface SearchOptions {
  kind?: string
  from?: string
  to?: string
  limit: string
  json?: boolean
  sql?: boolean
}

export const searchCommand: CommandDefinition<SearchOptions> = {
  description:
    'Finds what was said and written: in transcripts, e-mails (subject and text), titles of meetings, summaries, action items and playbook answers, the newest first. All words must occur in one text; words between quotes as they stand. Capital letters count as small ones, full-width characters as half-width ones, and parts of words are found as well. It only reads, needs no API settings and works at any time. When nothing is found, that is said on standard error and the status is 0.',
  arguments: [new Argument('<words...>', 'what to look for')],
  settings: settingsIn('database'),
  options: [
    new Option('--kind <kinds>', `only these, separated by commas: ${SEARCH_KINDS.join(', ')}`),
    new Option('--from <day>', 'not what was before this UTC day or RFC 3339 instant'),
    new Option('--to <day>', 'not what was after this UTC day, or from this RFC 3339 instant on'),
    new Option('--limit <count>', 'how many are shown at most').default('20'),
    new Option('--json', 'print one JSON object on standard output'),
    new Option('--sql', 'print the SQL that finds it, and do not run it').conflicts('json'),
  ],
  examples: [
    ['parley search 見積書', 'where it was said or written'],
    [
      'parley search \'"data processing agreement" hamburg\' --kind message,transcript --from 2026-03-01 --to 2026-03-31',
      'e-mails of March, and what was said in its meetings, with these three words in a row and the fourth anywhere',
    ],
    [
      'parley search renewal --sql | sqlite3 -readonly -box parley.db',
      'the same question, asked by another program',
    ],
  ],
  async run(context, { args, options, flags }) {
    const { settings } = settingsFor(context, { args, options, flags }, READING)
    const terms = termsFrom(args)
    const question = {
      terms,
      kinds: kindsFrom(options.kind),
      ...boundsFrom(options),
      limit: limitFrom(options.limit),
    }
    const { readSearch } = await import('../store/search-read.ts')
    const path = resolve(context.cwd, settings.database.path)
    const { rows, sql, unindexed } = readSearch(path, question, { run: options.sql !== true })
    const { stdout, stderr, env } = context
    if (options.sql) {
      stdout.write(`${sql}\n`)
      return EXIT_STATUS.done
    }
    if (unindexed > NOTICED) stderr.write(`parley: ${unindexedSentence(unindexed)}\n`)
    const hits = rows.map(row => hitOf(row, terms))
    if (options.json) {
      stdout.write(jsonLine({ terms, unindexed, hits: hits.map(forPrograms) }))
      return EXIT_STATUS.done
    }
    stdout.write(searchPage(hits, { colour: mayColour(stdout, env) }))
    stderr.write(`${countSentence(hits.length, question.limit)}\n`)
    return EXIT_STATUS.done
  },
}

/** A share of rows that are not indexed yet which makes no difference to anybody. */
const NOTICED = 0.05

function unindexedSentence(share: number): string {
  const part = share >= 1 ? 'There is no full-text index' : 'The full-text index is not finished'
  return `${part}, so the texts themselves are looked through, which may take a while. parley backfill and parley daemon make it, unless search.enabled is false.`
}

function countSentence(count: number, limit: number): string {
  if (count === 0) return 'Nothing was found.'
  if (count < limit) return `${counted(count, 'hit')}.`
  return `The newest ${counted(count, 'hit')}; there may be more: --limit shows them, --from, --to and --kind narrow it down.`
}

/** SQLite itself has limits, far beyond them. */
const LONGEST = 1000
const MOST_TERMS = 30

/** Each argument of several words stands for the words in it, as if all had been typed as one. */
function termsFrom(args: readonly string[]): string[] {
  const typed = args.join(' ')
  const terms = termsOf(typed)
  if (terms.length === 0) throw usage('There is nothing to look for', 'Name a word, or several.')
  if (typed.length > LONGEST || terms.length > MOST_TERMS) {
    throw usage(
      `This is too much to look for at once: ${counted(terms.length, 'word')}, ${counted(typed.length, 'sign')}`,
      `At most ${MOST_TERMS} words and ${LONGEST} signs are taken.`,
    )
  }
  return terms
}

function kindsFrom(given: string | undefined): readonly SearchKind[] {
  if (given === undefined) return SEARCH_KINDS
  return given.split(',').map(part => {
    const name = part.trim()
    const kind = SEARCH_KINDS.find(known => known === name)
    if (kind) return kind
    const guess = nearest(name, SEARCH_KINDS)
    throw usage(
      `--kind names nothing that can be searched: ${JSON.stringify(name)}`,
      `${guess === undefined ? '' : `Did you mean ${guess}? `}There are ${SEARCH_KINDS.join(', ')}.`,
    )
  })
}

const DAY_MS = 86_400_000

function boundsFrom(given: Pick<SearchOptions, 'from' | 'to'>): Pick<SearchQuestion, 'from' | 'to'> {
  const [from, to] = [boundFrom('--from', given.from), boundFrom('--to', given.to)]
  if (from === undefined || to === undefined || from < to) return { from, to }
  throw usage(
    `Nothing lies from ${JSON.stringify(given.from)} to ${JSON.stringify(given.to)}`,
    '--from is the earlier one; a day after --to is included, an instant is not.',
  )
}

/** A day after `--to` belongs to what is wanted. */
function boundFrom(flag: '--from' | '--to', given: string | undefined): string | undefined {
  if (given === undefined) return undefined
  const at = instant.read(given, { cwd: '' })
  if (at === undefined) {
    throw usage(
      `${flag} is ${JSON.stringify(given)}, expected ${instant.allowed()}`,
      'Give a day or an instant.',
    )
  }
  return flag === '--to' && isDay(given) ? new Date(Date.parse(at) + DAY_MS).toISOString() : at
}

/** All texts of so many hits are in memory at once. */
const MOST_HITS = 10_000

function limitFrom(given: string): number {
  const limit = Number(given)
  if (/^\d+$/.test(given) && limit >= 1 && limit <= MOST_HITS) return limit
  throw usage(
    `--limit is ${JSON.stringify(given)}, expected a whole number from 1 to ${MOST_HITS}`,
    'Without it, 20 are shown; the SQL that --sql prints takes any number.',
  )
}

function usage(message: string, hint: string): StopError {
  return new StopError(message, { code: 'bad-search', hint, exitStatus: EXIT_STATUS.usage })
}
