import type { Idle } from './idle.ts'
import type { Figure } from './report.ts'

const TIMELINE_RESOURCES = 2

export function idleFigures({ seconds, pollSeconds, counts, due, daemon }: Idle): Figure[] {
  const sent = counts.reduce((sum, { count }) => sum + count, 0)
  const polls = Math.ceil(seconds / pollSeconds)
  const audits = due.reduce((sum, { requests }) => sum + requests, 0)
  const most = TIMELINE_RESOURCES * polls + audits
  const cpu = (daemon.userMs + daemon.systemMs) / daemon.wallMs
  return [
    {
      measure: `requests in ${(seconds / 60).toFixed(1)} minutes in which nothing changes`,
      value: String(sent),
      wanted: `≤ ${most}: ${polls} polls of ${TIMELINE_RESOURCES} resources, ${audits} for what falls due`,
      reached: sent <= most,
    },
    {
      measure: 'CPU of the daemon, loading included',
      value: `${(100 * cpu).toFixed(1)} % of one core`,
      wanted: '',
      reached: undefined,
    },
    {
      measure: 'peak memory of the daemon',
      value: `${(daemon.peakKiB / 1024).toFixed(0)} MiB`,
      wanted: '',
      reached: undefined,
    },
  ]
}

export function idleTables({ counts, due }: Idle): string[] {
  return [
    [
      '| route | status | requests |',
      '|---|---|---|',
      ...counts.map(({ route, status, count }) => `| ${route} | ${status} | ${count} |`),
    ].join('\n'),
    [
      '| due besides polls | times | requests |',
      '|---|---|---|',
      ...due.map(({ feed, times, requests }) => `| ${feed} | ${times} | ${requests} |`),
    ].join('\n'),
  ]
}
