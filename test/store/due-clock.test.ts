import { expect, test } from 'vitest'
import { createDueClock } from '../../src/store/sync/due-clock.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const START = Date.parse('2026-03-04T12:00:00.000Z')

/** A machine whose clock is set by hand, and the notes that its processes leave. */
function machine() {
  let elapsed = 0
  let offMs = 0
  const notes = new Map<string, string>()
  const clock = { now: () => START + elapsed + offMs, elapsed: () => elapsed, sleep: async () => undefined }
  return {
    notes,
    start: () =>
      createDueClock(clock, {
        meta: key => notes.get(key),
        setMeta: (key, value) => void notes.set(key, value),
      }),
    pass: (ms: number) => {
      elapsed += ms
    },
    setClock: (ms: number) => {
      offMs = ms
    },
  }
}

/** In minutes. */
const waitOf = (due: { waitMs(at: string): number }, at: string) => Math.round(due.waitMs(at) / MINUTE)

test('a due time comes after as long as it was wanted', () => {
  const { start, pass } = machine()
  const due = start()
  const at = due.after(HOUR)
  pass(HOUR - 1)
  expect(due.now() < at).toBe(true)
  pass(1)
  expect(due.now() >= at).toBe(true)
  expect(due.waitMs(at)).toBe(0)
})

test.each([
  ['is set back by 40 days', 0, -40 * DAY],
  ['was 40 days ahead and is right again', 40 * DAY, 0],
  ['is set back by six seconds', 0, -6000],
])('a due time comes no later when the clock %s', (_, before, after) => {
  const { start, pass, setClock } = machine()
  setClock(before)
  const due = start()
  const at = due.after(HOUR)
  pass(20 * MINUTE)
  setClock(after)
  expect(waitOf(due, at)).toBe(40)
  pass(20 * MINUTE)
  expect(waitOf(due, at)).toBe(20)
})

test('a correction of a few seconds changes no due time by more than that', () => {
  const { start, pass, setClock } = machine()
  const due = start()
  const at = due.after(HOUR)
  for (let seconds = 4; seconds <= 40; seconds += 4) {
    pass(MINUTE)
    setClock(-1000 * seconds)
    due.now()
  }
  expect(waitOf(due, at)).toBe(51)
})

test('a read that falls due while the machine sleeps is due when it wakes', () => {
  const { start, setClock } = machine()
  const due = start()
  const at = due.after(HOUR)
  // Monotonic time stands still meanwhile.
  setClock(8 * HOUR)
  expect(due.waitMs(at)).toBe(0)
})

test('a process that starts after the clock was set back keeps the due times of the process before', () => {
  const { start, pass, setClock } = machine()
  setClock(40 * DAY)
  const at = start().after(HOUR)
  pass(20 * MINUTE)
  setClock(0)
  const next = start()
  // The last note is 20 minutes old: nothing tells that they have passed.
  expect(waitOf(next, at)).toBe(60)
  const later = next.after(HOUR)
  pass(30 * MINUTE)
  expect(waitOf(start(), later)).toBe(30)
})

test('time passes while no process runs, also after the clock was set back once', () => {
  const { start, pass, setClock } = machine()
  const first = start()
  first.after(0)
  setClock(-40 * DAY)
  const at = first.after(HOUR)
  pass(45 * MINUTE)
  expect(waitOf(start(), at)).toBe(15)
})

test('a due time of a clock that is far ahead is stored with a note of that clock', () => {
  const { notes, start, pass, setClock } = machine()
  const due = start()
  due.note()
  pass(MINUTE)
  setClock(365 * DAY)
  const at = due.after(HOUR)
  expect([...notes.values()]).toContain(new Date(START + MINUTE + 365 * DAY).toISOString())
  // The process is killed, and the clock is right again when the next one starts.
  setClock(0)
  expect(waitOf(start(), at)).toBe(60)
})

test('a note whose transaction was rolled back is made again', () => {
  const { notes, start, pass, setClock } = machine()
  const due = start()
  due.note()
  const before = new Map(notes)
  pass(MINUTE)
  setClock(-40 * DAY)
  due.after(HOUR)
  notes.clear()
  for (const [key, value] of before) notes.set(key, value)
  const at = due.after(HOUR)
  expect(waitOf(start(), at)).toBe(60)
  expect(notes).not.toEqual(before)
})
