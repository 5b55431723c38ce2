import type { LatencyRow } from './latency.ts'

export function latencyTable(rows: readonly LatencyRow[]): string {
  return [
    '| latency | `api.max_concurrency` | requests/s | over the best that was set | in flight | allowed itself |',
    '|---|---|---|---|---|---|',
    ...rows.map(row => {
      const { latencyMs, concurrency, perSecond, inFlight, allowed } = row
      const cells = [
        `${latencyMs} ms`,
        concurrency,
        perSecond.toFixed(1),
        (perSecond / bestSet(rows, latencyMs)).toFixed(2),
        inFlight.toFixed(1),
        allowed,
      ]
      return `| ${cells.join(' | ')} |`
    }),
  ].join('\n')
}

function bestSet(rows: readonly LatencyRow[], latencyMs: number): number {
  const set = rows.filter(row => row.latencyMs === latencyMs && row.concurrency !== 'free')
  return Math.max(...set.map(({ perSecond }) => perSecond))
}
