import type { PageMeasured } from './page.ts'
import type { Figure } from './report.ts'

/** The page may block the event loop for less than this. */
const MOST_BLOCKED_MS = 100
const MOST_KB = 200

export function pageFigures({ times, databaseBytes }: PageMeasured): Figure[] {
  const blocked = times.map(({ blockedMs }) => blockedMs)
  const kB = Math.max(...times.map(({ bytes }) => bytes)) / 1000
  const answered = times.map(({ ms }) => ms)
  return [
    {
      measure: 'event loop blocked while the page is read, longest',
      value: `${Math.max(...blocked).toFixed(0)} ms`,
      wanted: `< ${MOST_BLOCKED_MS} ms`,
      reached: Math.max(...blocked) < MOST_BLOCKED_MS,
    },
    {
      measure: 'size of the page',
      value: `${kB.toFixed(0)} kB`,
      wanted: `< ${MOST_KB} kB`,
      reached: kB < MOST_KB,
    },
    {
      measure: 'time until the page is there, shortest and longest',
      value: `${Math.min(...answered).toFixed(0)} and ${Math.max(...answered).toFixed(0)} ms`,
      wanted: '',
      reached: undefined,
    },
    {
      measure: 'size of the database',
      value: `${(databaseBytes / 1e6).toFixed(0)} MB`,
      wanted: '',
      reached: undefined,
    },
  ]
}
