import { EXIT_STATUS, ParleyError, reasonOf, reasonWithHint, StopError } from '../base/errors.ts'
import type { PublicationAttempt } from '../store/sync/publications.ts'
import type { PublishSummary } from './publish.ts'
import type { PublishOutcome } from './publish-once.ts'

/** The row of `sync_publications` for a publication that is complete or has failed. Pure. */
export function attemptOf(
  when: Pick<PublicationAttempt, 'target' | 'started_at' | 'finished_at'>,
  outcome: PublishOutcome,
): PublicationAttempt {
  if ('error' in outcome) return { ...when, ...NOTHING, ...failureOf(outcome.error) }
  const { publication, published_at, complete_as_of, fresh_as_of, tables, files_removed } = outcome.summary
  const failure = removalFailure(outcome.summary)
  const sum = (of: (table: PublishSummary['tables'][number]) => number) =>
    tables.reduce((total, table) => total + of(table), 0)
  return {
    ...when,
    publication,
    published_at,
    complete_as_of,
    fresh_as_of,
    tables_changed: sum(({ filesWritten }) => (filesWritten > 0 ? 1 : 0)),
    rows: sum(({ rows }) => rows),
    files_written: sum(({ filesWritten }) => filesWritten),
    files_removed,
    bytes_written: sum(({ bytesWritten }) => bytesWritten),
    ...(failure ? failureOf(failure) : { error_code: null, error: null }),
  }
}

/** The error of a complete publication that could not remove the files that no reader needs. */
export function removalFailure({
  publication,
  removal_error: error,
}: Pick<PublishSummary, 'publication' | 'removal_error'>): StopError | undefined {
  if (error === null) return undefined
  const { code, message, hint } = error
  return new StopError(
    `Publication ${publication} is complete; files of earlier ones could not be removed: ${message}`,
    { code, ...(hint !== null && { hint }), exitStatus: EXIT_STATUS.databaseUnavailable },
  )
}

const NOTHING = {
  publication: null,
  published_at: null,
  complete_as_of: null,
  fresh_as_of: null,
  tables_changed: 0,
  rows: 0,
  files_written: 0,
  files_removed: 0,
  bytes_written: 0,
} as const

function failureOf(error: unknown): Pick<PublicationAttempt, 'error_code' | 'error'> {
  const isOurs = error instanceof ParleyError
  return {
    error_code: isOurs ? error.code : 'fault',
    error: isOurs ? reasonWithHint(error) : reasonOf(error),
  }
}
