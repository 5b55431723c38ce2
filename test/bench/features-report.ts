import type { FeatureRun, Features } from './features.ts'
import type { Figure } from './report.ts'

const MIB = 2 ** 20
const MOST_TIME = 1.5
const MOST_SIZE = 2

export function featureFigures({ with: on, without: off }: Features): Figure[] {
  const time = on.usage.wallMs / off.usage.wallMs
  const size = on.size.bytes / off.size.bytes
  const judged = (measure: string, ratio: number, most: number): Figure => ({
    measure,
    value: ratio.toFixed(2),
    wanted: `≤ ${most}`,
    reached: ratio <= most,
  })
  const plain = (measure: string, value: string): Figure => ({
    measure,
    value,
    wanted: '',
    reached: undefined,
  })
  return [
    judged('time with search and typed tables over time without', time, MOST_TIME),
    judged('size with search and typed tables over size without', size, MOST_SIZE),
    plain('with both', described(on)),
    plain('without', described(off)),
    plain(
      'search indices',
      inMib(on, name => name.startsWith('search_')),
    ),
    plain(
      'typed tables of CRM objects',
      inMib(on, name => isTyped(name)),
    ),
  ]
}

const FIXED = /^(sqlite_autoindex_)?crm_(objects|fields|records|record_links|record_changes)/

function isTyped(name: string): boolean {
  return /^(sqlite_autoindex_)?crm_/.test(name) && !FIXED.test(name)
}

function described({ usage, size }: FeatureRun): string {
  const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`
  return `${seconds(usage.wallMs)} (CPU ${seconds(usage.userMs + usage.systemMs)}), ${(size.bytes / MIB).toFixed(0)} MiB, peak memory ${(usage.peakKiB / 1024).toFixed(0)} MiB`
}

function inMib({ size }: FeatureRun, matches: (name: string) => boolean): string {
  const bytes = size.parts.filter(({ name }) => matches(name)).reduce((sum, part) => sum + part.bytes, 0)
  return `${(bytes / MIB).toFixed(1)} MiB`
}
