import { META } from './meta.ts'

/**
 * Requests that the owner's ceiling for a UTC day has to count already, by what the processes that read the API noted.
 * @param meta reads a value of the database as a whole
 * @param day as `YYYY-MM-DD`
 */
export function requestsNoted(meta: (key: string) => string | undefined, day: string): number {
  const noted = JSON.parse(meta(META.requestsToday) ?? 'null') as { day: string; used: number } | null
  return noted?.day === day ? noted.used : 0
}
