import type { FeatureRun, Features } from './features.ts'
import { describedRun, type Figure, plainFigure, ratioFigure } from './report.ts'

const MIB = 2 ** 20
const MOST_TIME = 1.5
const MOST_SIZE = 2

export function featureFigures({ with: on, without: off }: Features): Figure[] {
  const time = on.usage.wallMs / off.usage.wallMs
  const size = on.size.bytes / off.size.bytes
  return [
    ratioFigure('time with search and typed tables over time without', time, MOST_TIME),
    ratioFigure('size with search and typed tables over size without', size, MOST_SIZE),
    plainFigure('with both', describedRun({ usage: on.usage, bytes: on.size.bytes })),
    plainFigure('without', describedRun({ usage: off.usage, bytes: off.size.bytes })),
    plainFigure(
      'search indices',
      inMib(on, name => name.startsWith('search_')),
    ),
    plainFigure(
      'typed tables of CRM objects',
      inMib(on, name => isTyped(name)),
    ),
  ]
}

const FIXED = /^(sqlite_autoindex_)?crm_(objects|fields|records|record_links|record_changes)/

function isTyped(name: string): boolean {
  return /^(sqlite_autoindex_)?crm_/.test(name) && !FIXED.test(name)
}

function inMib({ size }: FeatureRun, matches: (name: string) => boolean): string {
  const bytes = size.parts.filter(({ name }) => matches(name)).reduce((sum, part) => sum + part.bytes, 0)
  return `${(bytes / MIB).toFixed(1)} MiB`
}
