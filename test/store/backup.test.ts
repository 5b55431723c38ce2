import { readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { removeCopiesBefore } from '../../src/store/backup.ts'
import { newFolder } from './temporary-store.ts'

const MADE = Date.parse('2026-01-01T00:00:00.000Z')

test('a copy of an upgrade goes when its time has come, and nobody else’s file does', async () => {
  const folder = newFolder()
  const path = join(folder, 'parley.db')
  const files = [
    'parley.db',
    'parley.db-before-0002_next',
    'parley.db-before-the-move',
    'other.db-before-0002_next',
  ]
  for (const file of files) {
    writeFileSync(join(folder, file), '')
    utimesSync(join(folder, file), MADE / 1000, MADE / 1000)
  }
  expect(await removeCopiesBefore(path, MADE)).toBe(0)
  expect(readdirSync(folder).sort()).toEqual([...files].sort())
  expect(await removeCopiesBefore(path, MADE + 1)).toBe(1)
  expect(readdirSync(folder).sort()).toEqual(
    files.filter(file => file !== 'parley.db-before-0002_next').sort(),
  )
})
