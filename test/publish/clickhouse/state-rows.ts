import type { StoredPart } from '../../../src/publish/clickhouse/state.ts'
import type { CompletedRow, PartRow } from '../../../src/publish/clickhouse/state-tables.ts'

/** Rows of the state of a database, with a table `s`. */

export const completed = (publication: number, purgedAt = ''): CompletedRow => ({
  publication,
  published_at: '',
  complete_as_of: null,
  fresh_as_of: null,
  warehouse: '',
  purged_at: purgedAt,
})

export const shown = (publication: number, part: string, writtenIn: number): PartRow => ({
  publication,
  source: 's',
  part,
  position: 0,
  written_in: writtenIn,
  digest: '',
  rows: 1,
  bytes: 1,
})

export const stored = (part: string, writtenIn: number): StoredPart => ({
  source: 's',
  part,
  writtenIn,
  rows: 1,
})
