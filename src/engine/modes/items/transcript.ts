import { readDataList } from '../../../api/paging.ts'
import { DAY_MS, HOUR_MS } from '../../../base/clock.ts'
import { tableNamed } from '../../../catalog/catalog.ts'
import { entity, requestKey, type Table } from '../../../declare/table.ts'
import type { Denial } from '../../../store/deletions/suspicions.ts'
import { STATE_AFTER } from '../../../store/rows/transcripts.ts'
import type { EngineContext } from '../../context/context.ts'
import type { Reply } from '../../context/job.ts'
import { CONFIRM_AFTER_MS } from '../../deletions/deletion-states.ts'
import { endSuspicions, noteDenial } from '../../deletions/denial.ts'
import { compileParser, type ItemParser } from '../../parse/parse.ts'
import {
  askDetail,
  dropIfGone,
  type ItemHandler,
  type ItemWork,
  readAgain,
  rereadPartAfterMs,
  rowOf,
  waitUntilReady,
} from './item-handler.ts'

export const transcriptAnswer: ItemHandler = {
  answer: storeTranscript,
  absent: transcriptAbsent,
  taskOf: (_store, { id }, { key }) => ({ feed: id, key }),
}

/** Declares the answer as one payload, so that its entries are replaced together and their unknown fields are kept. */
const TRANSCRIPT: Table = entity('transcript', {
  about: 'The answer of a transcript read.',
  key: ['id'],
  columns: { id: requestKey('Meeting.') },
  children: [{ table: tableNamed('transcript_entries'), list: ['entries'], items: 'object' }],
})

const parseTranscript: ItemParser = compileParser(TRANSCRIPT)

function storeTranscript(context: EngineContext, work: ItemWork, value: unknown, reply: Reply): void {
  const { feed, task } = work
  const { store, options } = context
  if (!store.freshness.admits(reply.ticket, feed.table, task.key)) return
  const list = readDataList(value)
  if (dropIfGone(context, work)) return
  const entries = options.words ? list : list.map(withoutWords)
  const parsed = parseTranscript({ entries }, context.parsing.report(work, task.key), task.key)
  const rows = parsed?.children.get(feed.table) ?? []
  const counts = context.runs.counts(work.resource)
  counts.rowsRead += rows.length
  if (rows.length === 0) {
    if (list.length === 0) refuseTranscript(context, work, 'empty')
    else readAgain(context, work, DAY_MS)
    return
  }
  endSuspicions(context, feed.table, '', [task.key])
  const isNew = !store.transcripts.hasEntries(task.key)
  if (store.rows.replaceChildren(feed.table, task.key, rows, context.now())) {
    counts.rowsChanged += rows.length
    if (isNew) counts.rowsNew += rows.length
  }
  store.transcripts.setState(task.key, 'present', context.now())
  readAgain(context, work, rereadPartAfterMs(context, task.sortAt))
}

/** An answer without entries is a denial if entries are stored. Otherwise it sets the transcript's state. */
function refuseTranscript(context: EngineContext, work: ItemWork, means: Denial): void {
  const { task } = work
  if (!context.store.transcripts.hasEntries(task.key)) {
    context.store.transcripts.setState(task.key, STATE_AFTER[means], context.now())
    waitUntilReady(context, work)
    return
  }
  // Minutes are enough in a confirming round: the guard holds back only transcripts denied twice, an hour apart.
  const afterMs = context.rounds.isConfirming(work.resource) ? CONFIRM_AFTER_MS : HOUR_MS
  const verdict = noteDenial(context, rowOf(work), { means, afterMs })
  if (verdict.state === 'suspected') readAgain(context, work, afterMs, { waiting: true })
  else waitUntilReady(context, work)
}

function withoutWords(entry: unknown): unknown {
  if (typeof entry !== 'object' || entry === null) return entry
  return Object.fromEntries(Object.entries(entry).filter(([name]) => name !== 'words'))
}

function transcriptAbsent(context: EngineContext, work: ItemWork, means: 'absent' | 'withheld'): void {
  if (dropIfGone(context, work, { isRefused: true })) return
  askDetail(context, work)
  refuseTranscript(context, work, means)
}
