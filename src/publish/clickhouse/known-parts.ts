import type { KnownPart } from '../compare-parts.ts'
import { type DatabaseState, formOf, type StoredPart } from './state.ts'
import type { PartRow } from './state-tables.ts'

/** What a publication may assume about the parts of a table that the server has. Pure. */

export interface KnownTable {
  /** As the newest publication recorded them, also if it was interrupted. */
  parts: readonly RecordedPart[]
  /** Whether readers see exactly these parts: what has changed since the last complete publication is then enough. */
  isShown: boolean
}

export interface RecordedPart extends KnownPart {
  row: PartRow
}

/**
 * A part counts as missing if the server has another number of rows than recorded, such as after a loss of power. A table
 * without parts does not count as shown: it may have been left out, and have come back.
 */
export function knownTable(
  { publications, parts }: DatabaseState,
  stored: readonly StoredPart[],
  source: string,
): KnownTable {
  const last = publications.at(-1)?.publication ?? 0
  const recorded = parts.filter(row => row.source === source && row.publication >= last)
  const newest = Math.max(...recorded.map(({ publication }) => publication))
  const now = recorded.filter(({ publication }) => publication === newest)
  const shown = new Set(recorded.filter(({ publication }) => publication === last).map(formOfRow))
  const counts = new Map(
    stored
      .filter(one => one.source === source)
      .map(({ part, writtenIn, rows }) => [formOf(source, part, writtenIn), rows]),
  )
  return {
    parts: now.map(row => ({
      part: row.part === '' ? null : row.part,
      digest: row.digest,
      isMissing: counts.get(formOfRow(row)) !== row.rows,
      row,
    })),
    isShown: now.length > 0 && now.length === shown.size && now.every(row => shown.has(formOfRow(row))),
  }
}

const formOfRow = ({ source, part, written_in }: PartRow): string => formOf(source, part, written_in)
