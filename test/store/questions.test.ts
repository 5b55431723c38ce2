import { expect, test } from 'vitest'
import { META } from '../../src/store/sync/meta.ts'
import { newFolder, openAt } from './temporary-store.ts'

const names = (path: string): unknown[] => {
  const store = openAt(path)
  try {
    return store.db.prepare('SELECT name FROM parley_questions').pluck().all()
  } finally {
    store.close()
  }
}

test('the questions of the running version replace those of another one when the file is opened', () => {
  const path = `${newFolder()}/parley.db`
  const all = names(path)
  expect(all).toContain('freshness')
  const other = openAt(path)
  other.db.exec("UPDATE parley_questions SET name = 'of before ' || name")
  other.state.setMeta(META.questions, 'another digest')
  other.close()
  expect(names(path)).toEqual(all)
})
