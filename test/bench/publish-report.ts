import type { PublishMeasured, Written } from './publish.ts'
import type { Figure } from './report.ts'

const MOST_MIB = 300
const MOST_UNCHANGED_MS = 1000

const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`
const cpuMs = ({ usage }: Written) => usage.userMs + usage.systemMs

export function publishFigures(measured: PublishMeasured): Figure[] {
  const { bare, first, unchanged, full, newest, spread } = measured
  const peak =
    Math.max(...[first, ...unchanged, full, newest, spread].map(({ usage }) => usage.peakKiB)) / 1024
  const unchangedMs = Math.min(...unchanged.map(({ usage }) => usage.wallMs))
  const plain = (measure: string, value: string): Figure => ({
    measure,
    value,
    wanted: '',
    reached: undefined,
  })
  const written = (measure: string, run: Written): Figure =>
    plain(
      measure,
      `${seconds(run.usage.wallMs)} (CPU ${seconds(cpuMs(run))}), ${run.rows.toLocaleString('en')} rows and ${(run.bytes / 1e6).toFixed(1)} MB in ${run.files.toLocaleString('en')} files, ${Math.round(run.usage.peakKiB / 1024)} MiB`,
    )
  const ratio = (measure: string, run: Written): Figure =>
    plain(
      measure,
      `${(run.usage.wallMs / bare.usage.wallMs).toFixed(2)} of the time, ${(cpuMs(run) / cpuMs(bare)).toFixed(2)} of the processor time, ${(run.bytes / bare.bytes).toFixed(3)} of the bytes`,
    )
  return [
    written('bare Parquet files of the same rows', bare),
    written('first publication', first),
    ratio('first publication over bare files', first),
    {
      measure: 'unchanged, fastest',
      value: `${seconds(unchangedMs)} (CPU ${seconds(Math.min(...unchanged.map(cpuMs)))})`,
      wanted: `< ${seconds(MOST_UNCHANGED_MS)}`,
      reached: unchangedMs < MOST_UNCHANGED_MS,
    },
    written('unchanged, everything compared', full),
    written('the newest 1 % of the messages changed', newest),
    ratio('the newest 1 % over bare files', newest),
    written('1 % of the messages changed, of every month', spread),
    ratio('1 % of every month over bare files', spread),
    {
      measure: 'peak memory of a publication',
      value: `${peak.toFixed(0)} MiB`,
      wanted: `≤ ${MOST_MIB} MiB`,
      reached: peak <= MOST_MIB,
    },
  ]
}
