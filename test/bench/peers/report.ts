import { LIMIT, type Load, type PeerMeasured } from './measure.ts'

const LINES: readonly [title: string, cell: (peer: PeerMeasured) => string][] = [
  ['first load', ({ first }) => seconds(first.wallMs)],
  ['its processor time', ({ first }) => seconds(first.userMs + first.systemMs)],
  ['its peak memory', ({ first }) => `${Math.round(first.peakKiB / 1024)} MiB`],
  ['its requests', ({ first }) => String(first.requests)],
  ['load after a week', ({ next }) => seconds(next.wallMs)],
  ['its requests', ({ next }) => String(next.requests)],
  ['then missing', ({ wrong }) => String(wrong.missing)],
  ['deleted and still there', ({ wrong }) => String(wrong.gone)],
  ['out of date', ({ wrong }) => String(wrong.stale)],
  [`load at ${LIMIT.rate} requests/s`, ({ limited }) => seconds(limited.wallMs)],
  ['its refused requests', ({ limited }) => refused(limited)],
]

export function peersTable(measured: readonly PeerMeasured[]): string {
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [
    row(['', ...measured.map(({ name }) => name)]),
    row(['---', ...measured.map(() => '---:')]),
    ...LINES.map(([title, cell]) => row([title, ...measured.map(cell)])),
  ].join('\n')
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`

const refused = ({ refused, requests }: Load): string =>
  `${refused} of ${requests} (${((100 * refused) / requests).toFixed(1)} %)`
