import { systemClock } from '../../src/base/clock.ts'
import { readDatabase } from '../../src/store/file/open.ts'
import { buildSearch, createSearchIndices } from '../../src/store/search/indices.ts'
import { SEARCH_KINDS, type SearchKind, type SearchRow, termsOf } from '../../src/store/search/query.ts'
import { runSearch } from '../../src/store/search/run-search.ts'
import type { TemporaryStore } from './temporary-store.ts'
import { putOwn, putTranscript } from './unique-texts.ts'

/** A store with full-text indices and messages and meetings of a few words. */

export const NOW = '2026-03-04T00:00:00.000Z'

export interface Letter {
  id: string
  subject?: string | null
  text?: string
  at?: string
}

export function putMessage(store: TemporaryStore, { id, subject = null, text, at = NOW }: Letter): void {
  const sender = { handle: `${id}@example.com`, display_name: null, role: 'FROM', contact_id: null }
  store.put('message_copies', [
    {
      id,
      header_message_id: `<${id}>`,
      thread_id: null,
      subject,
      received_at: at,
      is_internal: false,
      is_group_email: false,
      participants: [sender],
    },
  ])
  if (text === undefined) return
  store.db.transaction(() => store.merge.applyText(id, { state: 'present', text }, NOW))()
}

export interface Talk {
  id: string
  title?: string
  at?: string
  chapters?: readonly { title: string; items: readonly string[] }[]
  actions?: readonly { text: string; detail?: string }[]
  said?: readonly string[]
  access?: 'open' | 'withheld'
}

export function putMeeting(store: TemporaryStore, talk: Talk): void {
  const { id, title = '', at = NOW, chapters = [], actions = [], access = 'open' } = talk
  const payload = {
    meeting_id: id,
    title,
    start_time: at,
    service_meeting_url: `https://example.com/${id}`,
    summaries: chapters.map(chapter => ({
      chapter_title: chapter.title,
      chapter_items: chapter.items.map((item, time) => ({ item, time })),
    })),
    action_items: actions.map((action, index) => ({ id: `a${index}`, completed: false, ...action })),
  }
  putOwn(store, { table: 'meetings', payload, own: { access }, now: NOW })
  if (talk.said) say(store, id, talk.said)
}

export function say(store: TemporaryStore, meeting: string, said: readonly string[]): void {
  const entries = said.map((text, at) => ({
    speaker_name: 'Aiko',
    text,
    elapsed_seconds: at * 61,
    words: [],
  }))
  store.db.transaction(() => putTranscript(store, meeting, entries))()
}

/** Builds the indices up to the stored rows, or drops them. Returns the number of batches. */
export async function build(store: TemporaryStore, isWanted = true, pieceMs = 5): Promise<number> {
  let pieces = 0
  await buildSearch({
    store,
    clock: systemClock(),
    isWanted,
    pieceMs,
    share: 1,
    signal: new AbortController().signal,
    onProgress: () => {
      pieces += 1
    },
  })
  return pieces
}

/** Does the smallest possible step. False when no work is left. */
export function advance(store: TemporaryStore, isWanted = true): boolean {
  const search = createSearchIndices(store)
  return store.db.transaction(() => search.advance(isWanted, () => false))()
}

export interface Asked {
  kinds?: readonly SearchKind[]
  from?: string
  to?: string
  limit?: number
}

export function ask(
  store: TemporaryStore,
  typed: string,
  { kinds = SEARCH_KINDS, limit = 1000, ...rest }: Asked = {},
) {
  const question = { terms: termsOf(typed), kinds, limit, ...rest }
  return readDatabase({ path: store.path }, db => runSearch(db, question, { run: true }))
}

/** The hits of a search as kind and text, in no order. */
export const found = (store: TemporaryStore, typed: string, asked: Asked = {}): string[] =>
  hitsOf(ask(store, typed, asked).rows)

export const hitsOf = (rows: readonly SearchRow[]): string[] =>
  rows.map(row => `${row.kind}: ${row.text ?? row.title}`).sort()
