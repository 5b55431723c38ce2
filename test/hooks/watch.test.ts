import { describe, expect, test } from 'vitest'
import { until } from '../support/until.ts'
import { type Receiver, receiver } from './receiver.ts'
import { DISK, storageInMemory, watchTrial } from './watch-trial.ts'

const MINUTE = 60_000

const events = ({ calls }: Receiver) => calls.map(({ payload: { event, id } }) => `${event} ${id}`)

const called = (of: Receiver, count: number) =>
  until(
    () => of.calls.length,
    seen => seen === count,
  )

/** Waits until as many problems are stored as announced. A look before that might end the call: it passes 15 s. */
const stored = ({ notes }: { notes: () => number }, count: number) => until(notes, seen => seen === count)

test('a problem is announced once however long it lasts, and its recovery once', async () => {
  const hook = await receiver()
  const trial = await watchTrial({ onProblem: hook.url, onRecovered: hook.url })
  const { look } = trial
  await look([DISK])
  await stored(trial, 1)
  await look([DISK], 40)
  await look([], 1)
  await look([DISK], 5)
  expect(events(hook)).toEqual([`problem ${DISK.id}`])
  await look([])
  await stored(trial, 0)
  await look([], 20)
  expect(events(hook)).toEqual([`problem ${DISK.id}`, `recovered ${DISK.id}`])
  expect(hook.calls[1]?.payload).toMatchObject({
    since: DISK.since,
    what: DISK.what,
    detail: '',
    todo: '',
    lasted_seconds: expect.any(Number),
    text: expect.stringMatching(
      /^parley, workspace acme: recovered after 13 min 30 s: The daemon cannot use the database/,
    ),
  })
})

test('a problem that one look sees calls no one', async () => {
  const hook = await receiver()
  const { look } = await watchTrial({ onProblem: hook.url, onRecovered: hook.url })
  for (let round = 0; round < 3; round += 1) {
    await look([DISK], 1)
    await look([], 2)
  }
  await look([{ ...DISK, id: 'other' }])
  await called(hook, 1)
  expect(events(hook)).toEqual(['problem other'])
})

test('a problem that recovers before its call has succeeded calls no one later', async () => {
  const hook = await receiver(response => response.writeHead(503).end())
  const { look, clock, lines } = await watchTrial({ onProblem: hook.url, onRecovered: hook.url })
  await look([DISK])
  await until(
    () => lines.length,
    count => count === 1,
  )
  await look([])
  await clock.advance(60 * MINUTE)
  expect(events(hook)).toEqual([`problem ${DISK.id}`])
})

test('a call that is under way when its problem recovers is followed by one about the recovery', async () => {
  let answer: () => void = () => undefined
  const hook = await receiver((response, number) => {
    if (number > 1) response.writeHead(200).end()
    else answer = () => response.writeHead(200).end()
  })
  const storage = storageInMemory()
  const trial = await watchTrial({ onProblem: hook.url, onRecovered: hook.url, storage })
  await trial.look([DISK], 2)
  await called(hook, 1)
  answer()
  await stored(trial, 1)
  await trial.look([], 2)
  await called(hook, 2)
  expect(events(hook)).toEqual([`problem ${DISK.id}`, `recovered ${DISK.id}`])
})

test('after a restart a problem that lasts is not announced again, and its recovery is', async () => {
  const hook = await receiver()
  const storage = storageInMemory()
  const hooks = { onProblem: hook.url, onRecovered: hook.url, storage }
  const before = await watchTrial(hooks)
  await before.look([DISK])
  await stored(before, 1)
  await before.watch.close()
  expect(storage.notes).toMatchObject([{ id: DISK.id, kind: DISK.kind, since: DISK.since }])
  const after = await watchTrial(hooks)
  await after.look([DISK], 10)
  expect(events(hook)).toEqual([`problem ${DISK.id}`])
  await after.look([])
  await stored(after, 0)
  await after.watch.close()
  expect(events(hook)).toEqual([`problem ${DISK.id}`, `recovered ${DISK.id}`])
  expect(storage.notes).toEqual([])
})

test('while the database cannot be written the process remembers what it announced, and stores it later', async () => {
  const hook = await receiver()
  const storage = storageInMemory()
  let isWritable = false
  let refused = 0
  const { look, notes } = await watchTrial({
    onProblem: hook.url,
    storage: {
      read: storage.read,
      async write(announced) {
        if (isWritable) return storage.write(announced)
        refused += 1
        return false
      },
    },
  })
  await look([DISK])
  await until(
    () => refused,
    count => count > 0,
  )
  await look([DISK], 10)
  expect(events(hook)).toEqual([`problem ${DISK.id}`])
  isWritable = true
  await look([DISK], 1)
  expect(await until(notes, count => count === 1)).toBe(1)
})

test('a problem that was announced before a restart is known as soon as the database can be read', async () => {
  const hook = await receiver()
  const storage = storageInMemory()
  await storage.write([{ id: DISK.id, what: DISK.what, todo: DISK.todo, since: DISK.since as string }])
  let isReadable = false
  const { look } = await watchTrial({
    onProblem: hook.url,
    storage: { ...storage, read: () => (isReadable ? storage.read() : undefined) },
  })
  await look([DISK], 1)
  isReadable = true
  await look([DISK, { ...DISK, id: 'other' }], 2)
  await called(hook, 1)
  expect(events(hook)).toEqual(['problem other'])
})

test('at most five calls are under way, and the others begin when these have ended', async () => {
  const open: (() => void)[] = []
  const hook = await receiver((response, number) => {
    if (number > 5) response.writeHead(200).end()
    else open.push(() => response.writeHead(200).end())
  })
  const { look, state } = await watchTrial({ onProblem: hook.url })
  const problems = Array.from({ length: 8 }, (_, number) => ({ ...DISK, id: `problem ${number}` }))
  await look(problems)
  await called(hook, 5)
  state.problems = problems
  for (const end of open) end()
  await until(
    async () => {
      await look(problems, 1)
      return hook.calls.length
    },
    count => count === 8,
  )
  expect(new Set(events(hook)).size).toBe(8)
})

test('without a hook nothing is looked at', async () => {
  const { look, state } = await watchTrial({})
  await look([DISK], 5)
  expect(state.looks).toBe(0)
})

test('with a hook for recoveries only, a problem calls no one and its recovery does', async () => {
  const hook = await receiver()
  const { look } = await watchTrial({ onRecovered: hook.url })
  await look([DISK], 3)
  await look([], 3)
  await called(hook, 1)
  expect(events(hook)).toEqual([`recovered ${DISK.id}`])
})

test('a watch that is closed waits a second for a call that is under way, and then drops it', async () => {
  const hook = await receiver(() => undefined)
  const { look, watch, clock, lines } = await watchTrial({ onProblem: hook.url })
  await look([DISK])
  await called(hook, 1)
  let isClosed = false
  const closed = watch.close().then(() => {
    isClosed = true
  })
  await clock.advance(999)
  expect(isClosed).toBe(false)
  await clock.advance(1)
  await closed
  await clock.advance(60 * MINUTE)
  expect(hook.calls).toHaveLength(1)
  expect(lines).toEqual([])
})

describe('the call about the end of the process', () => {
  const ENDED = { ...DISK, id: 'daemon:ended', what: 'The daemon is not running, so nothing is updated' }
  const never = new AbortController().signal

  test('the call needs no look, and the next process calls about the recovery', async () => {
    const hook = await receiver()
    const storage = storageInMemory()
    const hooks = { onProblem: hook.url, onRecovered: hook.url, storage }
    const before = await watchTrial(hooks)
    await before.watch.callAtEnd(ENDED, never)
    await before.watch.close()
    expect(before.lines).toMatchObject([{ level: 'info', msg: 'Called a hook', problem: 'daemon:ended' }])
    expect(events(hook)).toEqual(['problem daemon:ended'])
    const after = await watchTrial(hooks)
    await after.look([])
    await stored(after, 0)
    expect(events(hook)).toEqual(['problem daemon:ended', 'recovered daemon:ended'])
  })

  test('a webhook that does not answer delays the end by ten seconds, and is logged', async () => {
    const hook = await receiver(() => undefined)
    const { watch, clock, lines, notes } = await watchTrial({ onProblem: hook.url })
    let isOver = false
    const over = watch.callAtEnd(ENDED, never).then(() => {
      isOver = true
    })
    await called(hook, 1)
    await clock.advance(9_999)
    expect(isOver).toBe(false)
    await clock.advance(1)
    await over
    expect(lines).toMatchObject([{ level: 'warn', msg: 'A hook failed; this call is given up' }])
    expect(notes()).toBe(0)
  })

  test('a stop of the process interrupts the call', async () => {
    const hook = await receiver(() => undefined)
    const { watch } = await watchTrial({ onProblem: hook.url })
    const stop = new AbortController()
    const over = watch.callAtEnd(ENDED, stop.signal)
    await called(hook, 1)
    stop.abort()
    await over
    expect(hook.calls).toHaveLength(1)
  })
})

test('a watch that is closed between two tries ends at once and makes no other try', async () => {
  const hook = await receiver(response => response.writeHead(500).end())
  const { look, watch, clock, lines } = await watchTrial({ onProblem: hook.url })
  await look([DISK])
  await until(
    () => lines.length,
    count => count === 1,
  )
  await watch.close()
  await clock.advance(60 * MINUTE)
  expect(hook.calls).toHaveLength(1)
})
