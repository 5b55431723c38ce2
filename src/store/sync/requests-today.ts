import { META } from './meta.ts'

/**
 * Requests that count towards today's `api.max_requests_per_day`, as the processes that read the API stored them.
 * @param meta reads a value of `sync_meta`
 * @param day UTC day as `YYYY-MM-DD`
 */
export function readRequestsToday(meta: (key: string) => string | undefined, day: string): number {
  const noted = JSON.parse(meta(META.requestsToday) ?? 'null') as { day: string; used: number } | null
  return noted?.day === day ? noted.used : 0
}
