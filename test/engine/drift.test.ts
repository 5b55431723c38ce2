import fc from 'fast-check'
import { expect, test } from 'vitest'
import { tableNamed } from '../../src/catalog.ts'
import { createDriftLog } from '../../src/engine/drift.ts'
import { compileParser } from '../../src/engine/parse.ts'
import { createLog } from '../../src/log.ts'

/** Parses meetings and gives the fields that the log names. */
async function fieldsLoggedFor(items: readonly unknown[]): Promise<string[]> {
  const lines: string[] = []
  const log = await createLog({ level: 'info', stream: { write: line => lines.push(line) } })
  const report = { drift: createDriftLog(log)('meetings'), reject: () => undefined }
  const parse = compileParser(tableNamed('meetings'))
  for (const item of items) parse(item, report)
  return lines.map(line => JSON.parse(line).field)
}

const meeting = (more: object) => ({ meeting_id: 'm1', ...more })

test('an unknown field of an item is logged by its name, once', async () => {
  expect(await fieldsLoggedFor([meeting({ mood: 1 }), meeting({ mood: 2, weather: 3 })])).toEqual([
    'mood',
    'weather',
  ])
})

test('a field of an unexpected type is logged by its whole path', async () => {
  expect(await fieldsLoggedFor([meeting({ meeting_owner: { name: 7 } })])).toEqual(['meeting_owner.name'])
})

test('unknown names inside an object are not logged, whatever they are', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(fc.string({ unit: 'binary', minLength: 1 }), { minLength: 1 }),
      async words => {
        const fields = Object.fromEntries(words.map(word => [`${word}?`, 'x']))
        const items = [meeting({ related_objects: [{ fields }], meeting_owner: fields })]
        expect(await fieldsLoggedFor(items)).toEqual(['meeting_owner.*', 'fields.*'])
      },
    ),
    { numRuns: 50 },
  )
})

test('names that no API would give to a field are not logged', async () => {
  const items = ['Ms. Smith', 'a@example.com', '見積書', '\u001b[2J', 'x'.repeat(65), '7'].map(name =>
    meeting({ [name]: 1 }),
  )
  expect(await fieldsLoggedFor(items)).toEqual(['*'])
})

test('the number of unknown names that are logged is bounded', async () => {
  const items = Array.from({ length: 1000 }, (_, index) => meeting({ [`field_${index}`]: 1 }))
  const logged = await fieldsLoggedFor([...items, ...items])
  expect(logged).toHaveLength(21)
  expect(logged.at(-1)).toBe('*')
})
