import { Argument, Option } from 'commander'
import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import { isDay } from '../../base/instant.ts'
import { suggestion } from '../../base/nearest-name.ts'
import { jsonLine } from '../../base/safe-text.ts'
import { instant } from '../../config/kinds.ts'
import { SEARCH_KINDS, type SearchKind, type SearchQuestion, termsOf } from '../../store/search/query.ts'
import { hasColours } from '../../terminal/output.ts'
import { countText } from '../../terminal/wording.ts'
import {
  type CommandDefinition,
  DATABASE_ONLY,
  loadCommandSettings,
  settingsOfSections,
} from '../base/command.ts'
import { hitJson, hitOf, searchPage } from './hits.ts'

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
    'Searches transcripts, e-mails (subject and text), meeting titles, summaries, action items and playbook answers, newest first. All words must occur in one text; quoted words must occur in that order. Case and character width are ignored, and parts of words match. Only reads, needs no API settings and works at any time. The exit status is 0 even when nothing is found.',
  arguments: [new Argument('<words...>', 'words to search for')],
  settings: settingsOfSections('database'),
  options: [
    new Option('--kind <kinds>', `only these, separated by commas: ${SEARCH_KINDS.join(', ')}`),
    new Option('--from <day>', 'from this UTC day or RFC 3339 instant on'),
    new Option('--to <day>', 'up to this UTC day (inclusive) or RFC 3339 instant (exclusive)'),
    new Option('--limit <count>', 'maximum number of hits').default('20'),
    new Option('--json', 'print one JSON object on standard output'),
    new Option('--sql', 'print the SQL of the search and do not run it').conflicts('json'),
  ],
  examples: [
    ['parley search 見積書', 'finds where the word was said or written'],
    [
      'parley search \'"data processing agreement" hamburg\' --kind message,transcript --from 2026-03-01 --to 2026-03-31',
      'searches the e-mails and transcripts of March for a phrase and another word',
    ],
    ['parley search renewal --sql | sqlite3 -readonly -box parley.db', 'runs the same search in sqlite3'],
  ],
  async run(context, { args, options, flags }) {
    const { settings } = loadCommandSettings(context, { args, options, flags }, DATABASE_ONLY)
    const terms = parseTerms(args)
    const question = {
      terms,
      kinds: parseKinds(options.kind),
      ...parseBounds(options),
      limit: parseLimit(options.limit),
    }
    const { path } = settings.database
    const { rows, sql, unindexed } = await searchAt(path, question, { run: options.sql !== true })
    const { stdout, stderr, env } = context
    if (options.sql) {
      stdout.write(`${sql}\n`)
      return EXIT_STATUS.done
    }
    if (unindexed > MAX_UNINDEXED_SHARE) stderr.write(`parley: ${unindexedSentence(unindexed)}\n`)
    const hits = rows.map(row => hitOf(row, terms))
    if (options.json) {
      stdout.write(jsonLine({ terms, unindexed, hits: hits.map(hitJson) }))
      return EXIT_STATUS.done
    }
    stdout.write(searchPage(hits, { colour: hasColours(stdout, env) }))
    stderr.write(`${countSentence(hits.length, question.limit)}\n`)
    return EXIT_STATUS.done
  },
}

/**
 * @param options as of `runSearch`
 * @throws StopError (exit status 73) when there is no warehouse at this path, or the database cannot be read
 */
async function searchAt(path: string, question: SearchQuestion, options: { run: boolean }) {
  const [{ runSearch }, { noWarehouseError, requireWarehouse }, { readDatabase }, { hasTable }] =
    await Promise.all([
      import('../../store/search/run-search.ts'),
      import('../../store/status/status.ts'),
      import('../../store/file/open.ts'),
      import('../../store/database/existing-tables.ts'),
    ])
  requireWarehouse(path)
  return readDatabase({ path }, db => {
    if (!hasTable(db, 'messages')) throw noWarehouseError(db.name)
    return runSearch(db, question, options)
  })
}

/** With a larger share of rows not indexed yet, a search is noticeably slower. */
const MAX_UNINDEXED_SHARE = 0.05

function unindexedSentence(share: number): string {
  const part = share >= 1 ? 'There is no full-text index' : 'The full-text index is not finished'
  return `${part}, so this search may have taken longer. parley backfill and parley daemon build the index unless search.enabled is false.`
}

function countSentence(count: number, limit: number): string {
  if (count === 0) return 'No hits.'
  if (count < limit) return `${countText(count, 'hit')}.`
  return `The newest ${countText(count, 'hit')}. There may be more: raise --limit, or narrow the search with --from, --to and --kind.`
}

/** The limits of a search, far below those of SQLite. */
const MAX_CHARACTERS = 1000
const MAX_TERMS = 30

/** The arguments are joined: one argument with two words is the same as two arguments. */
function parseTerms(args: readonly string[]): string[] {
  const typed = args.join(' ')
  const terms = termsOf(typed)
  if (terms.length === 0) throw usageError('There is no word to search for', 'Give one or more words.')
  if (typed.length > MAX_CHARACTERS || terms.length > MAX_TERMS) {
    throw usageError(
      `The search is too long: ${countText(terms.length, 'word')}, ${countText(typed.length, 'character')}`,
      `Use at most ${MAX_TERMS} words and ${MAX_CHARACTERS} characters.`,
    )
  }
  return terms
}

function parseKinds(given: string | undefined): readonly SearchKind[] {
  if (given === undefined) return SEARCH_KINDS
  return given.split(',').map(part => {
    const name = part.trim()
    const kind = SEARCH_KINDS.find(known => known === name)
    if (kind) return kind
    throw usageError(
      `--kind: unknown kind ${JSON.stringify(name)}`,
      `${suggestion(name, SEARCH_KINDS)}The kinds are ${SEARCH_KINDS.join(', ')}.`,
    )
  })
}

function parseBounds(given: Pick<SearchOptions, 'from' | 'to'>): Pick<SearchQuestion, 'from' | 'to'> {
  const [from, to] = [parseBound('--from', given.from), parseBound('--to', given.to)]
  if (from === undefined || to === undefined || from < to) return { from, to }
  throw usageError(
    `--from ${JSON.stringify(given.from)} is not before --to ${JSON.stringify(given.to)}`,
    'Choose a --to after --from. A day given with --to is included, an instant is not.',
  )
}

/**
 * A day given with `--to` is included, so the bound is its end, 24:00. That is also later than 23:59:59.999 as text, and
 * unlike the start of the next day it always has a year of four digits.
 */
function parseBound(flag: '--from' | '--to', given: string | undefined): string | undefined {
  if (given === undefined) return undefined
  const at = instant.read(given, { cwd: '' })
  if (at === undefined) {
    throw usageError(
      `${flag} is ${JSON.stringify(given)}: expected ${instant.allowed()}`,
      'Give a day or an instant.',
    )
  }
  return flag === '--to' && isDay(given) ? `${given}T24:00:00.000Z` : at
}

/** The limit bounds memory: the texts of all hits are in memory at once. */
const MAX_HITS = 10_000

function parseLimit(given: string): number {
  const limit = Number(given)
  if (/^\d+$/.test(given) && limit >= 1 && limit <= MAX_HITS) return limit
  throw usageError(
    `--limit is ${JSON.stringify(given)}: expected a whole number from 1 to ${MAX_HITS}`,
    `The default is 20. For more than ${MAX_HITS}, run the SQL that --sql prints with a larger LIMIT.`,
  )
}

function usageError(message: string, hint: string): StopError {
  return new StopError(message, { code: 'bad-search', hint, exitStatus: EXIT_STATUS.usage })
}
