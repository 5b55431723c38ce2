import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { PROGRAM, startParley } from './parley.ts'

/** Node opens its debugger on SIGUSR1 in a process without a handler. Any user of the machine could then read the key. */

const BUILT = dirname(PROGRAM)

/** A thread gets no signals. */
const THREADS = ['report/worker.js', 'store/database/wal-checkpoint-worker.js', 'store/status/worker.js']

const CHILDREN = readdirSync(BUILT, { recursive: true, encoding: 'utf8' })
  .filter(name => /(^|[/-])worker\.js$/.test(name))
  .filter(name => !THREADS.includes(name))

/** Loaded before the program: tells the parent how many handlers there are when the program takes its order. */
const REPORT = `data:text/javascript,${encodeURIComponent(
  "process.on('newListener', name => name === 'message' && setImmediate(() => process.send(process.listenerCount('SIGUSR1'))))",
)}`

test('the child processes are found by their names', () => {
  expect(CHILDREN.toSorted()).toEqual([
    'publish/publish-worker.js',
    'store/maintenance/rebuild-worker.js',
    'store/snapshot/worker.js',
  ])
})

test.each(CHILDREN)('%s handles SIGUSR1 before it takes its order', async program => {
  const child = fork(join(BUILT, program), [], { execArgv: ['--import', REPORT], env: {} })
  onTestFinished(() => void child.kill('SIGKILL'))
  const ended = once(child, 'exit').then(([status]) => [`it ended with ${status}`])
  const [handlers] = await Promise.race([once(child, 'message'), ended])
  expect(handlers).toBe(1)
})

test('SIGUSR1 opens no debugger in a command', async () => {
  const { child, ended } = startParley(['simulate', '--json', '--port', '0', '--messages', '10'])
  onTestFinished(() => void child.kill('SIGKILL'))
  const [line] = await once(child.stdout ?? child, 'data')
  child.kill('SIGUSR1')
  // When the answer is here, the signal was handled.
  expect((await fetch(JSON.parse(line).url)).status).toBeGreaterThan(0)
  child.kill('SIGTERM')
  const { status, stderr } = await ended
  expect(status).toBe(0)
  expect(stderr).not.toMatch(/debugger/i)
})
