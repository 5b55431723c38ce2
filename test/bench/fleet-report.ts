import type { Fleet } from './fleet.ts'
import type { Figure } from './report.ts'

/** What one more workspace costs a machine: medians and the most of all daemons. */
export function fleetFigures({ daemons, start, idle, footprints, statusMs }: Fleet): Figure[] {
  const plain = (measure: string, value: string): Figure => ({
    measure,
    value,
    wanted: '',
    reached: undefined,
  })
  const spread = (of: (footprint: (typeof footprints)[number]) => number, unit = '') => {
    const sorted = footprints.map(of).sort((a, b) => a - b)
    const at = (share: number) => Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0)
    return `${at(0.5)}${unit}, at most ${at(1)}${unit}`
  }
  const hours = idle.seconds / 3600
  return [
    plain(
      'memory of a daemon, with its part of shared pages (PSS)',
      spread(one => one.pssKiB / 1024, ' MiB'),
    ),
    plain(
      'memory of a daemon, with all shared pages (RSS)',
      spread(one => one.rssKiB / 1024, ' MiB'),
    ),
    plain(
      'open files and sockets of a daemon',
      spread(one => one.files),
    ),
    plain(
      'threads of a daemon',
      spread(one => one.threads),
    ),
    plain(
      'processor time of an idle daemon',
      `${((100 * idle.cpuMs) / daemons / (idle.seconds * 1000)).toFixed(2)} % of one core`,
    ),
    plain('requests of an idle daemon', `${Math.round(idle.requests.total / daemons / hours)} in an hour`),
    plain(
      'requests of all idle daemons in one second',
      `${(idle.requests.total / idle.seconds).toFixed(1)}, at most ${Math.round(idle.requests.busiestSecond)}`,
    ),
    plain(
      'all started at once: until the last one is ready',
      `${(start.readyMs / 1000).toFixed(0)} s, ${(start.cpuMs / daemons / 1000).toFixed(1)} s of processor time for each`,
    ),
    plain(
      'all started at once: requests',
      `${start.requests.total}, at most ${Math.round(start.requests.busiestSecond)} in one second`,
    ),
    {
      measure: 'parley status --all',
      value: `${(statusMs / 1000).toFixed(1)} s`,
      wanted: '≤ 3 s',
      reached: statusMs <= 3000,
    },
  ]
}
