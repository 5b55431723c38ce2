import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createLog } from '../../src/base/log.ts'
import { tableNamed } from '../../src/catalog/catalog.ts'
import { createDriftLog, type DriftLogDeps } from '../../src/engine/parse/drift.ts'
import { compileParser } from '../../src/engine/parse/parse.ts'
import { runs } from '../support/effort.ts'
import { numberedPage, startScriptedApi } from '../support/scripted-api.ts'
import { startTrial } from './trial-backfill.ts'

/** Parses meetings and returns the fields that the log names. */
async function fieldsLoggedFor(
  items: readonly unknown[],
  kept: DriftLogDeps['logged'][] = [],
): Promise<string[]> {
  const lines: string[] = []
  const log = await createLog({ level: 'info', stream: { write: line => lines.push(line) } })
  const note = (logged: DriftLogDeps['logged']) => kept.push(JSON.parse(JSON.stringify(logged)))
  const drifts = createDriftLog({ log, logged: kept.at(-1) ?? [], note })
  const report = { drift: drifts.of('meetings'), reject: () => undefined }
  const parse = compileParser(tableNamed('meetings'))
  for (const item of items) parse(item, report)
  drifts.flush()
  return lines.flatMap(line => namesIn(line))
}

/** The fields of a line of the log, without their table. */
const namesIn = (line: string): string[] =>
  JSON.parse(line)
    .fields.split(', ')
    .map((field: string) => field.replace(/^\w+\./, ''))

const meeting = (more: object) => ({ meeting_id: 'm1', ...more })

test('an unknown field of an item is logged by its name, once', async () => {
  expect(await fieldsLoggedFor([meeting({ mood: 1 }), meeting({ mood: 2, weather: 3 })])).toEqual([
    'mood',
    'weather',
  ])
})

test('a field of an unexpected type is logged by its whole path', async () => {
  expect(await fieldsLoggedFor([meeting({ meeting_owner: { name: 7 } })])).toEqual([
    'meeting_owner.name (unexpected type)',
  ])
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
    { numRuns: runs(50) },
  )
})

test('names that no API would give to a field are not logged', async () => {
  const items = ['Ms. Smith', 'a@example.com', '見積書', '\u001b[2J', 'x'.repeat(65), '7'].map(name =>
    meeting({ [name]: 1 }),
  )
  expect(await fieldsLoggedFor(items)).toEqual(['*'])
})

test('the number of logged unknown names is bounded', async () => {
  const items = Array.from({ length: 1000 }, (_, index) => meeting({ [`field_${index}`]: 1 }))
  const logged = await fieldsLoggedFor([...items, ...items])
  expect(logged).toHaveLength(21)
  expect(logged.at(-1)).toBe('*')
})

test('a difference is logged once per warehouse, and not again by a later process', async () => {
  const items = [
    meeting({ mood: 1, title: 7 }),
    ...Array.from({ length: 30 }, (_, at) => meeting({ [`f_${at}`]: 1 })),
  ]
  const kept: DriftLogDeps['logged'][] = []
  expect(await fieldsLoggedFor(items, kept)).toHaveLength(22)
  const before = kept.length
  expect(await fieldsLoggedFor([...items, meeting({ another: 1 })], kept)).toEqual([])
  expect(kept).toHaveLength(before)
  expect(await fieldsLoggedFor([meeting({ title: 1, url: 2, service_meeting_url: 3 })], kept)).toEqual([
    'service_meeting_url (unexpected type)',
  ])
})

test('all fields of an answer that differ are one line of the log, and no later run logs them', async () => {
  const api = await startScriptedApi()
  const later = { another: 1 }
  let item: object = { id: 'm', name: 7, mood: 'x' }
  api.on('/v1/members', () => numberedPage([item]))
  const trial = await startTrial(api)
  const drifts = () =>
    trial
      .logged()
      .split('\n')
      .filter(line => line.includes('kept in _extra'))
      .map(line => JSON.parse(line))
  await trial.run(['members'])
  const fields = 'members.name (unexpected type), members.mood'
  const line = { level: 'warn', resource: 'members', fields, command: 'parley status --fields' }
  expect(drifts()).toEqual([expect.objectContaining(line)])
  await trial.run(['members'])
  expect(drifts()).toHaveLength(1)
  item = { ...item, ...later }
  await trial.run(['members'])
  expect(drifts().at(-1)).toMatchObject({ fields: 'members.another' })
})
