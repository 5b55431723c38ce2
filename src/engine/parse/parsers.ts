import { encodeJson } from '../../base/json.ts'
import type { Log } from '../../base/log.ts'
import { tableNamed } from '../../catalog/catalog.ts'
import type { FeedName } from '../../catalog/feeds.ts'
import type { Store } from '../../store/store.ts'
import { META, readNote } from '../../store/sync/meta.ts'
import { createDriftLog, type ParseReport } from './drift.ts'
import { compileParser, type ItemParser } from './parse.ts'

/**
 * The most different rejects of one answer that are stored. The reason of the last stored reject states the number of
 * the others. So an answer with many tiny items takes neither long nor much space.
 */
const MOST_REJECTS = 1000

export interface ParsingDeps {
  store: Pick<Store, 'state' | 'rejects'>
  log: Pick<Log, 'warn'>
  now(): string
}

export type Parsing = ReturnType<typeof createParsing>

/** The parsers of all tables, and where they report what does not fit. */
export function createParsing({ store, log, now }: ParsingDeps) {
  const parsers = new Map<string, ItemParser>()
  const drifts = createDriftLog({
    log,
    logged: readNote(store.state.meta, META.drift) ?? [],
    note: logged => store.state.setMeta(META.drift, JSON.stringify(logged)),
  })
  const rejects = new Map<string, Parameters<typeof store.rejects.note>[0]>()
  let others = 0
  return {
    parser(table: string): ItemParser {
      const parser = parsers.get(table) ?? compileParser(tableNamed(table))
      parsers.set(table, parser)
      return parser
    },
    /** Receives drift and rejects from a parser; `scope` is the list or record that was read. */
    report: ({ resource, id: feed }: FeedName, scope: string): ParseReport => ({
      drift: drifts.of(resource),
      reject(_table, item, reason, within = '') {
        if (rejects.size === MOST_REJECTS) {
          others += 1
          return
        }
        // A reject of a list without scopes gets the row's key as its scope, so that the purge of the row finds it.
        const place = scope === '' ? within : scope
        const reject = { resource, feed, scope: place, item, reason }
        rejects.set(`${feed}\u0000${place}\u0000${encodeJson(item)}`, reject)
      },
    }),
    /** Stores an answer, and then its rejects and drift. */
    answer(storeAnswer: () => void): void {
      rejects.clear()
      others = 0
      storeAnswer()
      const last = [...rejects.values()].at(-1)
      if (last !== undefined && others > 0) last.reason += `, and ${others} other items of this answer`
      for (const reject of rejects.values()) store.rejects.note(reject, now())
      drifts.flush()
    },
  }
}
