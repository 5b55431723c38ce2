import { EventEmitter } from 'node:events'
import { describe, expect, test } from 'vitest'
import { EXIT_STATUS, StopError } from '../../../src/base/errors.ts'
import {
  pauseAfterRead,
  type Watch,
  type WatchRead,
  watchStatus,
} from '../../../src/commands/status/watch.ts'
import { createFullScreen } from '../../../src/terminal/full-screen.ts'
import { virtualClock } from '../../api/virtual-clock.ts'
import { NOW, report } from '../../health/report.ts'
import { screen } from '../screen.ts'

test.each([
  [0, 2000],
  [5, 2000],
  [200, 2000],
  [201, 2010],
  [3000, 30_000],
])('after a read of %i ms the next one begins %i ms later', (readMs, pauseMs) => {
  expect(pauseAfterRead(readMs)).toBe(pauseMs)
})

const OVERVIEW = {
  runs: new Map(),
  coverage: { months: [], rows: [] },
  traffic: { hour: [], day: [], week: [] },
  today: [],
  drift: [],
  guesses: 0,
}
const READ = { report: report(), overview: OVERVIEW, readMs: 0 }

/** A display on a terminal in memory. */
function startWatch(read: WatchRead, changes: Partial<Watch> = {}) {
  const terminal = screen(80, 24)
  const clock = virtualClock(NOW)
  const stdout = new EventEmitter()
  const rawModes: boolean[] = []
  const keyboard = Object.assign(new EventEmitter(), {
    setRawMode: (isRaw: boolean) => rawModes.push(isRaw),
    resume: () => undefined,
    pause: () => undefined,
  })
  const signal = new AbortController()
  const ended = watchStatus({
    clock,
    path: '/data/parley.db',
    screen: createFullScreen(terminal),
    stdout,
    colour: false,
    keyboard,
    signal: signal.signal,
    createRead: () => read,
    ...changes,
  })
  return {
    terminal,
    clock,
    ended,
    type: (keys: string) => keyboard.emit('data', keys),
    stop: () => signal.abort(),
    resize(columns: number, rows: number) {
      terminal.resize(columns)
      terminal.rows = rows
      stdout.emit('resize')
    },
    /** What is left on the terminal, of the keyboard and of listeners. */
    remains: () => ({
      isClean: terminal.isClean(),
      isRaw: rawModes.at(-1),
      listeners: keyboard.listenerCount('data') + stdout.listenerCount('resize'),
    }),
  }
}

const NOTHING_LEFT = { isClean: true, isRaw: false, listeners: 0 }
/** Lets a read end that needs no time. */
const turn = () => new Promise(setImmediate)
const never: WatchRead = () => new Promise(() => undefined)

describe('a display of the status', () => {
  test.each(['q', 'Q', '\u0003', '\u0004'])(
    'ends with status 0 by the key %j, also during a read',
    async key => {
      const { terminal, ended, type, remains } = startWatch(never)
      expect(terminal.lines()[0]).toBe('Reading /data/parley.db')
      expect(remains()).toEqual({ isClean: false, isRaw: true, listeners: 2 })
      type('x')
      type('\u001b[1;5q')
      expect(remains().isClean).toBe(false)
      type(key)
      expect(await ended).toBe(EXIT_STATUS.done)
      expect(remains()).toEqual(NOTHING_LEFT)
      expect(terminal.lines()).toEqual([])
    },
  )

  test('ends with status 0 by a signal, also without a keyboard', async () => {
    const { ended, stop, terminal } = startWatch(never, { keyboard: undefined })
    stop()
    expect(await ended).toBe(EXIT_STATUS.done)
    expect(terminal.isClean()).toBe(true)
  })

  test('ages grow between two reads, and the next read begins after the pause', async () => {
    let reads = 0
    const { terminal, clock, ended, stop } = startWatch(async () => {
      reads += 1
      return { ...READ, readMs: 1000 }
    })
    await turn()
    await clock.advance(9000)
    expect(terminal.lines().at(-1)).toBe('Read 9 s ago. q or Ctrl-C ends.')
    expect(reads).toBe(1)
    await clock.advance(1000)
    expect(terminal.lines().at(-1)).toBe('Read 0 s ago. q or Ctrl-C ends.')
    expect(reads).toBe(2)
    stop()
    await ended
  })

  test('a warehouse that cannot be read is a verdict, until it can be read', async () => {
    const error = new StopError('There is no warehouse', { code: 'no-database', exitStatus: 73 })
    let isThere = false
    const { terminal, clock, ended, stop } = startWatch(async () => {
      if (isThere) return READ
      throw error
    })
    await turn()
    await clock.advance(4500)
    expect(terminal.lines()[0]).toBe('Needs you since 12:00:00 UTC: There is no warehouse')
    isThere = true
    await clock.advance(2000)
    expect(terminal.lines()[0]).toMatch(/^Up to date: /)
    stop()
    await ended
  })

  test('a fault of the program leaves the terminal clean and is thrown', async () => {
    const { ended, remains } = startWatch(async () => {
      throw new TypeError('a fault')
    })
    await expect(ended).rejects.toThrow('a fault')
    expect(remains()).toEqual(NOTHING_LEFT)
  })

  test('a resized terminal is drawn again at once', async () => {
    const { terminal, ended, stop, resize } = startWatch(async () => READ)
    await turn()
    expect(terminal.lines().length).toBeGreaterThan(20)
    resize(40, 10)
    expect(terminal.lines()).toHaveLength(10)
    expect(Math.max(...terminal.lines().map(({ length }) => length))).toBeLessThan(40)
    stop()
    await ended
  })
})
