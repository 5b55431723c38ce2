import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { runProgram } from '../../src/store/database/child-program.ts'
import { newFolder } from './temporary-store.ts'

test('a child program ends with its answer, whatever it left running', async () => {
  const file = join(newFolder(), 'program.mjs')
  const library = new URL('../../dist/store/database/child-program.js', import.meta.url)
  writeFileSync(
    file,
    `import { answerParent } from ${JSON.stringify(library.href)}
     answerParent(({ bytes }) => {
       setInterval(() => undefined, 1000)
       return Buffer.alloc(bytes, 7)
     })`,
  )
  const answer = await runProgram<Uint8Array>({
    program: pathToFileURL(file),
    input: { bytes: 3_000_000 },
    signal: AbortSignal.timeout(10_000),
    noAnswerError: how => new Error(how),
  })
  expect(answer.length).toBe(3_000_000)
})
