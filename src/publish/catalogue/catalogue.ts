import { createCachedReading } from '../../base/cached-reading.ts'
import { type Clock, inTime, SECOND_MS } from '../../base/clock.ts'
import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import { PUBLICATIONS } from '../publications.ts'
import type { TargetReader } from '../storage/target-reader.ts'
import {
  type CompletePublication,
  foldersOfPublication,
  readLastPublication,
  readShownTable,
  type ShownTable,
} from './complete-publication.ts'

/** How long the result of a look is used. */
const LOOK_MS = 2 * SECOND_MS
/** How long a request waits. The read that it waited for goes on, and later requests use the result. */
const LIMIT = {
  ms: 10 * SECOND_MS,
  error: new StopError('The target of the publications does not answer in time', {
    code: 'publish-slow',
    hint: 'Try again later. A large publication may be running, or the network may be slow.',
    exitStatus: EXIT_STATUS.unfinished,
  }),
}

interface ReadTables {
  /** The tag of the publication that the tables belong to. */
  of: string
  tables: Map<string, Promise<ShownTable | undefined>>
}

/**
 * What a catalogue says about a target. The catalogue looks for a new publication only when a caller asks, and at most
 * every few seconds. The metadata of a table is read once for each publication.
 */
export function createCatalogue(target: Pick<TargetReader, 'read'>, clock: Clock) {
  /** A higher number looks again at once. */
  let looks = 0
  const look = createCachedReading(
    () => lastPublication(target),
    clock,
    () => LOOK_MS,
  )
  const publication = () => look(String(looks))
  let read: ReadTables = { of: '', tables: new Map() }
  const tableOf = (shown: CompletePublication, name: string): Promise<ShownTable | undefined> => {
    if (read.of !== shown.tag) read = { of: shown.tag, tables: new Map() }
    const { tables } = read
    const known = tables.get(name)
    if (known) return known
    const table = readShownTable(target, shown, name)
    tables.set(name, table)
    table.catch(() => tables.delete(name))
    return table
  }
  const table = async (name: string): Promise<ShownTable | undefined> => {
    const shown = await publication()
    if (!foldersOfPublication(shown).includes(name)) return undefined
    const found = await tableOf(shown, name)
    if (found) return found
    // The metadata is gone: a later publication was completed. Look again.
    looks += 1
    const later = await publication()
    if (!foldersOfPublication(later).includes(name)) return undefined
    return (await tableOf(later, name)) ?? Promise.reject(missingError(name))
  }
  return {
    /** @throws StopError when there is no complete publication, or the target cannot be read in time */
    publication: async () => summaryOf(await inTime(clock, LIMIT, publication)),
    /** @returns undefined when the last complete publication has no such table @throws StopError as `publication` */
    table: (name: string) => inTime(clock, LIMIT, () => table(name)),
  }
}

async function lastPublication(target: Pick<TargetReader, 'read'>): Promise<CompletePublication> {
  const last = await readLastPublication(target)
  if (last) return last
  throw new StopError('The target has no complete publication yet', {
    code: 'publish-none',
    hint: 'Wait for the first publication of the daemon, or run parley publish.',
    exitStatus: EXIT_STATUS.unfinished,
  })
}

function summaryOf(last: CompletePublication) {
  const { publication, published_at, complete_as_of, fresh_as_of } = last
  return {
    tables: foldersOfPublication(last),
    /** The number and the instants of the publication, by names for readers. */
    properties: {
      publication: String(publication),
      published_at,
      ...(complete_as_of !== null && { complete_as_of }),
      ...(fresh_as_of !== null && { fresh_as_of }),
    },
  }
}

function missingError(table: string): StopError {
  return new StopError(`The target has no metadata of the table ${table} for its last publication`, {
    code: 'publish-damaged',
    hint: `Publish again. A copy of the target must have the files of ${PUBLICATIONS} last.`,
    exitStatus: EXIT_STATUS.unfinished,
  })
}
