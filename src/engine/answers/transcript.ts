import { readDataList } from '../../api/paging.ts'
import { tableNamed } from '../../catalog.ts'
import { entity, requested, type Table } from '../../resource.ts'
import { type EngineContext, HOUR } from '../context.ts'
import type { Reply } from '../job.ts'
import { compileParser, type ItemParser } from '../parse.ts'
import { again, type ItemHandler, type ItemWork, isTooLate, partAbsent, waitFor, whereOf } from './work.ts'

export const transcriptAnswer: ItemHandler = { answer: storeTranscript, absent: transcriptAbsent }

/** The answer as one payload, so that its list is replaced as a whole and its oddities are kept. */
const TRANSCRIPT: Table = entity('transcript', {
  about: 'The answer of a transcript read.',
  key: ['id'],
  columns: { id: requested('Meeting.') },
  children: [{ table: tableNamed('transcript_entries'), list: ['entries'], items: 'object' }],
})

const parseTranscript: ItemParser = compileParser(TRANSCRIPT)

function storeTranscript(context: EngineContext, work: ItemWork, value: unknown, reply: Reply): void {
  const { feed, task } = work
  const { store, options } = context
  if (!store.freshness.admits(reply.ticket, feed.table, task.key)) return
  const list = readDataList(value)
  if (isTooLate(context, work)) return
  const entries = options.words ? list : list.map(withoutWords)
  const parsed = parseTranscript({ entries }, context.report(whereOf(work), task.key), task.key)
  const rows = parsed?.children.get(feed.table) ?? []
  const counts = context.counts(work.resource.name)
  counts.rowsRead += rows.length
  if (rows.length === 0 && transcriptState(context, task.key) === 'present') {
    // What was there and now is empty is believed when an answer an interval later says the same.
    const believedFrom = task.deadline ?? context.after(HOUR)
    if (context.now() < believedFrom) {
      again(context, work, { afterMs: HOUR, deadline: believedFrom, waiting: true })
      return
    }
  }
  if (store.rows.replaceChildren(feed.table, task.key, rows, context.now())) counts.rowsChanged += rows.length
  setTranscriptState(context, task.key, rows.length > 0 ? 'present' : 'empty')
  if (rows.length > 0) store.tasks.remove(task)
  else waitFor(context, work)
}

function withoutWords(entry: unknown): unknown {
  if (typeof entry !== 'object' || entry === null) return entry
  return Object.fromEntries(Object.entries(entry).filter(([name]) => name !== 'words'))
}

function transcriptState({ store }: EngineContext, meeting: string): unknown {
  return store.prepare('SELECT transcript_state FROM meetings WHERE id = ?').pluck().get(meeting)
}

function setTranscriptState(context: EngineContext, meeting: string, state: string): void {
  context.store
    .prepare(
      'UPDATE meetings SET transcript_state = @state, _synced_at = @now WHERE id = @meeting AND transcript_state <> @state',
    )
    .run({ meeting, state, now: context.now() })
}

function transcriptAbsent(context: EngineContext, work: ItemWork, meaning: 'absent' | 'withheld'): void {
  setTranscriptState(context, work.task.key, meaning === 'withheld' ? 'withheld' : 'gone')
  partAbsent(context, work)
}
