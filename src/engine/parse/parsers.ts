import { tableNamed } from '../../catalog/catalog.ts'
import type { FeedName } from '../../catalog/feeds.ts'
import type { Log } from '../../log.ts'
import type { Store } from '../../store/store.ts'
import { META, readNote } from '../../store/sync/meta.ts'
import { createDriftLog } from './drift.ts'
import { compileParser, type ItemParser } from './parse.ts'
import type { ParseReport } from './report.ts'

/** The parsers of all tables, and where they report what does not fit. */
export interface Parsing {
  parser(table: string): ItemParser
  /** Receives drift and rejects from a parser; `scope` is the list or record that was read. */
  report(feed: FeedName, scope: string): ParseReport
}

export interface ParsingDeps {
  store: Pick<Store, 'state' | 'rejects'>
  log: Pick<Log, 'warn'>
  now(): string
}

export function createParsing({ store, log, now }: ParsingDeps): Parsing {
  const parsers = new Map<string, ItemParser>()
  const driftOf = createDriftLog({
    log,
    logged: readNote(store.state.meta, META.drift) ?? [],
    note: logged => store.state.setMeta(META.drift, JSON.stringify(logged)),
  })
  return {
    parser(table) {
      const parser = parsers.get(table) ?? compileParser(tableNamed(table))
      parsers.set(table, parser)
      return parser
    },
    report: ({ resource, feed }, scope) => ({
      drift: driftOf(resource),
      reject(_table, item, reason, within = '') {
        // A reject of a list without scopes gets the row's key as its scope, so that the purge of the row finds it.
        store.rejects.note({ resource, feed, scope: scope === '' ? within : scope, item, reason }, now())
      },
    }),
  }
}
