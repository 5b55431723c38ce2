import { coarsen, DAY, HOUR, MINUTE, SECOND } from '../../base/instants.ts'
import { mix, mixBelow } from '../../base/random.ts'
import { SALT, type Scene } from '../../base/scene.ts'
import { sortedByTime } from '../../base/timeline.ts'

const COPY_COUNTS = [1, 1, 1, 1, 1, 1, 2, 2, 2, 3] as const

export interface Layout {
  times: Float64Array
  thread: Uint32Array
  mail: Uint16Array
  copy: Uint8Array
  /** First message of each thread. */
  threadStart: Uint32Array
}

/** The thread, e-mail and copy number of each message, and when it was received. */
export function createLayout(scene: Scene): Layout {
  const { seed, sizes } = scene
  const count = sizes.messages
  const thread = new Uint32Array(count)
  const mail = new Uint16Array(count)
  const copy = new Uint8Array(count)
  const starts: number[] = []
  for (let index = 0; index < count; ) {
    const at = starts.length
    starts.push(index)
    const mails =
      1 + Math.min(mixBelow(seed, SALT.thread + 20, at, 6), mixBelow(seed, SALT.thread + 21, at, 14))
    for (let number = 0; number < mails && index < count; number++) {
      const copies = COPY_COUNTS[mixBelow(seed, SALT.thread + 22 + number, at, COPY_COUNTS.length)] ?? 1
      for (let each = 0; each < copies && index < count; each++, index++) {
        thread[index] = at
        mail[index] = number
        copy[index] = each
      }
    }
  }
  const times = receivedTimes(scene, { thread, mail, copy }, starts.length)
  return { times, thread, mail, copy, threadStart: Uint32Array.from(starts) }
}

function receivedTimes(
  scene: Scene,
  { thread, mail, copy }: Pick<Layout, 'thread' | 'mail' | 'copy'>,
  threads: number,
): Float64Array {
  const { seed, start, end } = scene
  const times = new Float64Array(thread.length)
  let sentAt = 0
  for (let index = 0; index < times.length; index++) {
    const at = thread[index] ?? 0
    const draw = mix(seed, SALT.message + 10, index)
    if (copy[index] === 0) {
      const gap = MINUTE * 7 + (mix(seed, SALT.message + 11, index) / 0x1_0000_0000) ** 2 * 4 * DAY
      const opened =
        start + ((at + (mix(seed, SALT.message + 12, at) % 1_000) / 1_000) / threads) * (end - start)
      sentAt = mail[index] === 0 ? opened : sentAt + gap
    }
    // Most copies arrive within seconds; one in eight arrives up to five hours later.
    const delay = copy[index] === 0 ? 0 : draw % 8 === 0 ? (draw % 300) * MINUTE : (draw % 40) * SECOND
    times[index] = coarsen(
      Math.floor(Math.min(sentAt + delay, end - (draw % 5) * HOUR - (draw % 1_000_000))),
      draw,
    )
  }
  makeTies(times)
  return times
}

/** Gives neighbours in time the same instant, as bulk imports do: pairs, triples, and runs longer than a page. */
function makeTies(times: Float64Array): void {
  const order = sortedByTime(times)
  const level = (from: number, length: number): void => {
    const first = times[order[from] ?? 0] ?? 0
    const second = first - (first % SECOND)
    for (let i = from; i < Math.min(order.length, from + length); i++) times[order[i] ?? 0] = second
  }
  for (let from = 50; from < order.length; from += 83) level(from, 2 + (from % 2))
  for (const [part, length, least] of TIE_RUNS)
    if (order.length >= least) level(Math.floor(order.length * part), length)
}

/** Position in the history (0 to 1), length of the run, and how many messages the workspace needs to have the run. */
const TIE_RUNS = [
  [0.2, 130, 1_000],
  [0.5, 35, 120],
  [0.8, 230, 4_000],
] as const
