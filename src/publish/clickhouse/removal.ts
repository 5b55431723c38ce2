import { folderOfSource, isSource } from './layout.ts'
import { type DatabaseState, formOf, type Relation, type StoredPart } from './state.ts'
import { type CompletedRow, type PartRow, STATE_TABLES } from './state-tables.ts'
import { type DatabasePlace, dropPartitions, literal } from './statements.ts'
import { viewNamesOf } from './views.ts'

/** Which rows of a database no reader needs once a publication is complete. Pure. */

/**
 * The publications that stay readable, and the parts that they show. A publication of before the last purge may show
 * purged content, so it does not stay.
 */
export function keptPublications(
  publications: readonly CompletedRow[],
  keep: number,
  purgedAt: string,
): ReadonlySet<number> {
  const kept = publications.filter(({ purged_at }) => purged_at === purgedAt).slice(-keep)
  return new Set(kept.map(({ publication }) => publication))
}

/**
 * The parts that no kept publication shows: earlier forms of parts that changed, and what interrupted publications
 * wrote. A later publication than `publication` may be running, and its rows are left alone.
 */
export function unneededParts(
  stored: readonly StoredPart[],
  { parts }: Pick<DatabaseState, 'parts'>,
  kept: ReadonlySet<number>,
  publication: number,
): StoredPart[] {
  const needed = new Set(
    parts
      .filter(row => kept.has(row.publication))
      .map(({ source, part, written_in }) => formOf(source, part, written_in)),
  )
  return stored.filter(
    ({ source, part, writtenIn }) => writtenIn <= publication && !needed.has(formOf(source, part, writtenIn)),
  )
}

/** The views of tables that are not published any more. A view of another program that has a name of these stays. */
export function unneededViews(
  relations: ReadonlyMap<string, Relation>,
  current: readonly { name: string }[],
): string[] {
  const names = new Set(current.map(({ name }) => name))
  const folders = [...relations.keys()].flatMap(name => folderOfSource(name) ?? [])
  const known = new Set(folders.flatMap(viewNamesOf))
  return [...relations]
    .filter(([name, { digest }]) => digest !== '' && known.has(name) && !names.has(name))
    .map(([name]) => name)
}

/**
 * The tables of rows that no kept publication shows, and to which the next one writes nothing: those of tables that are
 * not published any more, and of earlier columns.
 * @param current the tables to which this publication writes
 */
export function unneededSources(
  relations: ReadonlyMap<string, Relation>,
  current: ReadonlySet<string>,
  { parts }: Pick<DatabaseState, 'parts'>,
  kept: ReadonlySet<number>,
): string[] {
  const needed = new Set(parts.filter(({ publication }) => kept.has(publication)).map(({ source }) => source))
  return [...relations.keys()].filter(name => isSource(name) && !current.has(name) && !needed.has(name))
}

/** Statements that remove parts with all their rows, and their files with them. */
export function dropParts(place: DatabasePlace, unneeded: readonly StoredPart[]): string[] {
  const bySource = new Map<string, string[]>()
  for (const { source, part, writtenIn } of unneeded)
    bySource.set(source, [...(bySource.get(source) ?? []), `(${literal(part)}, ${writtenIn})`])
  return [...bySource].flatMap(([source, partitions]) => dropPartitions(place, source, partitions))
}

/** Statements that remove the lists of parts of publications that are not kept. */
export function dropPartLists(
  place: DatabasePlace,
  parts: readonly PartRow[],
  kept: ReadonlySet<number>,
): string[] {
  const numbers = new Set(parts.map(({ publication }) => publication))
  const unneeded = [...numbers].filter(publication => !kept.has(publication))
  return dropPartitions(place, STATE_TABLES.parts, unneeded.map(String))
}
