import { DAY_MS, MINUTE_MS } from './clock.ts'

/** The default zone. It is handled without `Intl`, whose tables take 6 MiB. */
const UTC = 'UTC'

/** The canonical name of a time zone; undefined when this Node.js does not know the zone. */
export function zoneNamed(name: string): string | undefined {
  if (name === UTC) return UTC
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone
  } catch {
    return undefined
  }
}

/** No zone is further than this from UTC. */
const MOST_OFFSET_MS = 15 * 60 * MINUTE_MS

/**
 * Returns a function that finds when a local day begins, in ms since the epoch, to the minute. Days are counted from
 * 1970-01-01. A day that the zone skipped begins when the next day does.
 */
export function createDayBegin(timeZone: string): (day: number) => number {
  if (timeZone === UTC) return day => day * DAY_MS
  const format = new Intl.DateTimeFormat('sv-SE', {
    timeZone,
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
  })
  const localDay = (at: number) => Date.parse(format.format(at)) / DAY_MS
  let offset = 0
  return day => {
    const usual = day * DAY_MS + offset
    if (localDay(usual) === day && localDay(usual - 1) < day) return usual
    let [before, after] = [day * DAY_MS - MOST_OFFSET_MS, day * DAY_MS + MOST_OFFSET_MS]
    while (after - before > MINUTE_MS) {
      const middle = before + Math.floor((after - before) / 2 / MINUTE_MS) * MINUTE_MS
      if (localDay(middle) >= day) after = middle
      else before = middle
    }
    offset = after - day * DAY_MS
    return after
  }
}

/** Returns a function that gives the minute of the local day, from 0 to 1439. */
export function createLocalMinute(timeZone: string): (ms: number) => number {
  if (timeZone === UTC) return ms => new Date(ms).getUTCHours() * 60 + new Date(ms).getUTCMinutes()
  const format = new Intl.DateTimeFormat('en-GB', {
    timeZone,
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  })
  return ms => {
    const [hour, minute] = format.format(ms).split(':').map(Number)
    return (hour ?? 0) * 60 + (minute ?? 0)
  }
}

/** Returns a function that gives the hour of the local day, from 0 to 23. */
export function createLocalHour(timeZone: string): (ms: number) => number {
  const minuteOf = createLocalMinute(timeZone)
  return ms => Math.floor(minuteOf(ms) / 60)
}
