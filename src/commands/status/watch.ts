import { type Clock, SECOND_MS } from '../../base/clock.ts'
import { EXIT_STATUS, type ExitStatus, StopError } from '../../base/errors.ts'
import { readOverviewAt } from '../../store/status/overview.ts'
import { readStatusReport } from '../../store/status/report.ts'
import { countedReadInProcess, createCountedStatusReader } from '../../store/status/thread.ts'
import type { Keyboard } from '../../terminal/ask.ts'
import type { FullScreen } from '../../terminal/full-screen.ts'
import type { Output } from '../../terminal/output.ts'
import { statusDisplay } from './display.ts'
import type { WatchedStatus } from './view.ts'

/** `parley status --watch`: reads the status again and again, and shows it until it is stopped. */

export interface Watch {
  clock: Clock
  path: string
  screen: FullScreen
  /** The terminal that `screen` draws on. */
  stdout: Pick<Output, 'on' | 'off'>
  colour: boolean
  /** Undefined when standard input is not a terminal: then only the signal ends the display. */
  keyboard: Keyboard | undefined
  signal: AbortSignal
  /** @param signal aborted when the display ends */
  createRead(signal: AbortSignal): WatchRead
}

/** @throws StopError while the warehouse cannot be read */
export type WatchRead = () => Promise<ReadStatus>

export interface ReadStatus extends Pick<Extract<WatchedStatus, { state: 'read' }>, 'report' | 'overview'> {
  /** How long this process itself read, without its child. */
  readMs: number
}

const LEAST_PAUSE_MS = 2 * SECOND_MS
const PAUSE_FACTOR = 10

/** How long to wait after a read, so that reading takes at most a tenth of the time. */
export function pauseAfterRead(readMs: number): number {
  return Math.max(LEAST_PAUSE_MS, PAUSE_FACTOR * readMs)
}

/** Ages on the screen grow between two reads. */
const REDRAW_MS = SECOND_MS

/** Ends with status 0: a person who closes a display has got what they wanted. */
export async function watchStatus(watch: Watch): Promise<ExitStatus> {
  const { clock, screen, stdout, keyboard } = watch
  const closed = new AbortController()
  const signal = AbortSignal.any([watch.signal, closed.signal])
  let watched: WatchedStatus = { state: 'unread', path: watch.path }
  const draw = () => {
    if (signal.aborted) return
    screen.draw(statusDisplay(watched, { ...screen.size(), colour: watch.colour, now: clock.now() }))
  }
  screen.open()
  const releaseKeyboard = keyboard && listenForQuit(keyboard, () => closed.abort())
  stdout.on?.('resize', draw)
  const reading = keepReading(watch, signal, next => {
    watched = next(watched)
    draw()
  })
  try {
    // A read may take seconds. The end of the display does not wait for it.
    await Promise.race([reading, keepDrawing(clock, signal, draw)])
    return EXIT_STATUS.done
  } finally {
    closed.abort()
    stdout.off?.('resize', draw)
    releaseKeyboard?.()
    screen.close()
  }
}

async function keepDrawing(clock: Clock, signal: AbortSignal, draw: () => void): Promise<void> {
  while (!signal.aborted) {
    draw()
    await clock.sleep(REDRAW_MS, signal)
  }
}

async function keepReading(
  { clock, createRead }: Watch,
  signal: AbortSignal,
  update: (next: (last: WatchedStatus) => WatchedStatus) => void,
): Promise<void> {
  const read = createRead(signal)
  while (!signal.aborted) {
    let readMs = 0
    try {
      const { report, overview, readMs: took } = await read()
      readMs = took
      update(() => ({ state: 'read', report, overview, at: clock.now() }))
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof StopError)) throw error
      update(last => ({
        state: 'unreadable',
        error,
        since: last.state === 'unreadable' ? last.since : clock.now(),
      }))
    }
    await clock.sleep(pauseAfterRead(readMs), signal)
  }
}

/** A process counts the rows of a large warehouse, at most a twentieth of the time: store/status/thread.ts. */
export function createWatchRead(path: string, clock: Clock, signal: AbortSignal): WatchRead {
  const counted = createCountedStatusReader({ clock, start: countedReadInProcess(signal) })
  return async () => {
    const known = await counted.read(path)
    // The process was killed. Reading here instead would delay the end.
    signal.throwIfAborted()
    const startedAt = clock.elapsed()
    const now = clock.now()
    const report = readStatusReport({ path, now, ...(known && { rows: known.rows }) })
    const overview = known?.overview ?? readOverviewAt(path, now)
    return { report, overview, readMs: clock.elapsed() - startedAt }
  }
}

/** `q`, Ctrl-C and Ctrl-D. In raw mode Ctrl-C is a character and sends no signal. */
const QUIT_KEYS = 'qQ\u0003\u0004'
const ESCAPE = '\u001b'

/**
 * Calls `quit` when one of the keys is pressed that end a display. Nothing typed is shown.
 * @returns a function that gives the keyboard back
 */
function listenForQuit(keyboard: Keyboard, quit: () => void): () => void {
  const listen = (typed: Buffer | string) => {
    const text = String(typed)
    // Arrows and function keys send an escape sequence, which may contain any letter.
    if (!text.startsWith(ESCAPE) && [...text].some(key => QUIT_KEYS.includes(key))) quit()
  }
  keyboard.setRawMode?.(true)
  keyboard.on('data', listen)
  keyboard.resume()
  return () => {
    keyboard.off('data', listen)
    keyboard.setRawMode?.(false)
    keyboard.pause()
  }
}
