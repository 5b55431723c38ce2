import { META, readNote } from './meta.ts'

export interface RequestsToday {
  /** UTC day as `YYYY-MM-DD`. */
  day: string
  used: number
}

/**
 * Requests that count towards today's `api.max_requests_per_day`, as the processes that read the API stored them.
 * @param meta reads a value of `sync_meta`
 * @param day UTC day as `YYYY-MM-DD`
 */
export function readRequestsToday(meta: (key: string) => string | undefined, day: string): number {
  const noted = readNote<RequestsToday>(meta, META.requestsToday)
  return noted?.day === day ? noted.used : 0
}
