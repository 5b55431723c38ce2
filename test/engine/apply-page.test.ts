import { expect, test } from 'vitest'
import { type DeclaredFeed, feedNamed, type ListFeed } from '../../src/catalog/feeds.ts'
import type { EngineContext } from '../../src/engine/context/context.ts'
import { listPage } from '../../src/engine/modes/apply-page.ts'
import { createPageGuard } from '../../src/engine/modes/page-guard.ts'
import { applyPeriodPage } from '../../src/engine/modes/periodic/page.ts'
import { createUndatedEntries } from '../../src/engine/modes/periodic/undated-entries.ts'
import { applyTimelinePage } from '../../src/engine/modes/timeline/page.ts'
import { startScriptedApi } from '../support/scripted-api.ts'
import { message, startTrial } from './trial-backfill.ts'
import { startTimed } from './trial-timed.ts'

const AT = '2026-01-01T00:00:00.000Z'
const REPLY = { ticket: 1, sentAt: AT, serverSentAt: AT }

/** A context that notes the steps of a page, in their order. */
async function notedContext() {
  const api = await startScriptedApi()
  const { context } = await startTimed(api, await startTrial(api), ['messages', 'access_logs'])
  const ran: string[] = []
  const noted =
    <Args extends unknown[], Result>(step: string, work: (...args: Args) => Result) =>
    (...args: Args): Result => {
      ran.push(step)
      return work(...args)
    }
  const { store, parsing, urgent } = context
  const { rowTimes, segments } = store
  const noting: EngineContext = {
    ...context,
    parsing: { ...parsing, parser: noted('parse', parsing.parser) },
    urgent: { ...urgent, addNewRow: noted('follow up', urgent.addNewRow) },
    store: {
      ...store,
      write: noted('store', store.write),
      rowTimes: { ...rowTimes, within: noted('find missing', rowTimes.within) },
      segments: { ...segments, save: noted('advance', segments.save) },
    },
  }
  return { context: noting, ran }
}

function listOf<Mode extends ListFeed['mode']>(name: string, mode: Mode) {
  const list = feedNamed(name)
  if (list.feed.mode !== mode) throw new TypeError(`${name} is no ${mode}`)
  return list as DeclaredFeed<Extract<ListFeed, { mode: Mode }>>
}

test('a page is parsed, stored, followed up and searched for missing rows before its checkpoint advances', async () => {
  const { context, ran } = await notedContext()
  const list = listOf('messages.list', 'timeline')
  const [segment] = context.store.segments.of(list.id)
  if (!segment) throw new Error('messages have no segment')
  const value = { data: [message(1)], page_info: { end_cursor: 'next', has_next_page: true } }
  const page = listPage(context, list, { query: {}, segment }, { value, reply: REPLY })
  const work = { list, base: {}, guard: createPageGuard(), underWay: new Set<number>() }
  expect(await context.store.transaction(() => applyTimelinePage(context, work, page))).toBe(true)
  expect(ran).toEqual(['parse', 'store', 'follow up', 'find missing', 'advance'])
})

test('nothing of a page that must not be stored changes the warehouse', async () => {
  const { context, ran } = await notedContext()
  const list = listOf('access_logs.log', 'periodic')
  const bounds = { from: '2026-01-01T00:00:00.000Z', to: '2026-01-02T00:00:00.000Z' }
  const reads = {
    list,
    undated: createUndatedEntries(context, list.feed, () => null),
    endIgnoredAt: undefined,
    isEndDoubted: false,
    isAnswered: true,
  }
  const late = { occurred_at: '2026-01-03T00:00:00.000Z' }
  const value = { data: [late], pagination: { next_cursor: 'next' } }
  const isStored = await context.store.transaction(() => {
    const segment = context.store.segments.add({ feed: list.id, scope: '', ...bounds })
    const page = listPage(context, list, { query: {}, segment }, { value, reply: REPLY })
    return applyPeriodPage(context, reads, page, { guard: createPageGuard(), isEndIgnored: false })
  })
  expect(isStored).toBe(false)
  expect(ran).toEqual(['parse'])
})
