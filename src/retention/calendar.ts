import { Cron } from 'croner'

/**
 * Work that goes by the calendar, in the machine's time zone: the only user of croner. Everything that has to do
 * with the API goes by intervals instead, which the owner can scale.
 */
export const CALENDAR = {
  /** Erasing, pruning and tidying of the file: when few people ask it anything. */
  maintenance: '17 3 * * *',
} as const

/** When an entry of the calendar is next to be done, in ms since the epoch. Pure but for the time zone. */
export function nextOccurrence(pattern: string, after: number): number {
  const next = new Cron(pattern).nextRun(new Date(after))
  return next?.getTime() ?? Number.POSITIVE_INFINITY
}
