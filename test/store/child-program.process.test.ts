import { spawn } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { runProgram } from '../../src/store/database/child-program.ts'
import { isRunning } from '../support/is-running.ts'
import { until } from '../support/until.ts'
import { newFolder } from './temporary-store.ts'

const LIBRARY = JSON.stringify(new URL('../../dist/store/database/child-program.js', import.meta.url).href)

/** A module that may use the compiled library. */
function moduleOf(source: string): string {
  const file = join(newFolder(), 'program.mjs')
  writeFileSync(
    file,
    `import { spawn } from 'node:child_process'
     import { once } from 'node:events'
     import { answerParent, runProgram } from ${LIBRARY}
     ${source}`,
  )
  return file
}

const programOf = (work: string) => pathToFileURL(moduleOf(`answerParent(async input => { ${work} })`))

const run = (program: URL, input: object, signal = AbortSignal.timeout(30_000)) =>
  runProgram<unknown>({ program, input, signal, noAnswerError: how => new Error(how) })

test('a child program ends with its answer, whatever it left running', async () => {
  const program = programOf('setInterval(() => undefined, 1000); return Buffer.alloc(input.bytes, 7)')
  const answer = await run(program, { bytes: 3_000_000 })
  expect((answer as Uint8Array).length).toBe(3_000_000)
})

describe('a program that a child program has started, and which never ends', () => {
  /** A program that starts a shell with a child, waits until both run, and goes on with the rest. */
  function starterOf(rest: string) {
    const file = join(newFolder(), 'pids')
    const script = `sleep 3333 & echo $$ $! > '${file}'; echo; wait`
    const shell = `spawn('/bin/sh', ['-c', ${JSON.stringify(script)}], { env: ${JSON.stringify({ PATH: process.env['PATH'] })} })`
    const pids = () =>
      existsSync(file) ? readFileSync(file, 'utf8').split(/\s/).filter(Boolean).map(Number) : []
    onTestFinished(() => {
      for (const pid of pids().filter(isRunning)) process.kill(pid, 'SIGKILL')
    })
    return {
      program: programOf(`await once(${shell}.stdout, 'data'); ${rest}`),
      hasStarted: () =>
        until(
          () => pids().length,
          count => count === 2,
        ),
      async expectEnded() {
        expect(pids()).toHaveLength(2)
        const left = await until(
          () => pids().filter(isRunning),
          running => running.length === 0,
          { patienceMs: 5000 },
        )
        expect(left).toEqual([])
      },
    }
  }

  test('is ended with the answer', async () => {
    const { program, expectEnded } = starterOf('return "done"')
    expect(await run(program, {})).toBe('done')
    await expectEnded()
  })

  test('is ended when the child program ends without an answer', async () => {
    const { program, expectEnded } = starterOf('process.exit(3)')
    await expect(run(program, {})).rejects.toThrow('status 3')
    await expectEnded()
  })

  test('is ended when the child program is stopped', async () => {
    const { program, hasStarted, expectEnded } = starterOf("await once(process, 'never')")
    const stop = new AbortController()
    const answer = run(program, {}, stop.signal)
    answer.catch(() => undefined)
    await hasStarted()
    stop.abort(new Error('stopped'))
    await expect(answer).rejects.toThrow('stopped')
    await expectEnded()
  })

  test('is ended when the parent process is killed', async () => {
    const { program, hasStarted, expectEnded } = starterOf("await once(process, 'disconnect')")
    const parent = moduleOf(
      `await runProgram({
         program: new URL(${JSON.stringify(program.href)}),
         input: {},
         signal: new AbortController().signal,
         noAnswerError: how => new Error(how),
       })`,
    )
    const { pid = 0 } = spawn(process.execPath, [parent], { stdio: 'ignore' })
    await hasStarted()
    process.kill(pid, 'SIGKILL')
    await expectEnded()
  })
})
