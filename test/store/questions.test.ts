import { expect, test } from 'vitest'
import { META } from '../../src/store/sync/meta.ts'
import { newFolder, openAt } from './temporary-store.ts'

const names = (path: string, table: string): unknown[] => {
  const store = openAt(path)
  try {
    return store.db.prepare(`SELECT name FROM ${table}`).pluck().all()
  } finally {
    store.close()
  }
}

test.each([
  ['questions', 'parley_questions', META.questions, 'freshness'],
  ['metrics', 'metrics', META.dictionary, 'win_rate'],
])(
  'the %s of the running version replace those of another one when the file is opened',
  (_, table, meta, one) => {
    const path = `${newFolder()}/parley.db`
    const all = names(path, table)
    expect(all).toContain(one)
    const other = openAt(path)
    other.db.exec(`UPDATE ${table} SET name = 'of before ' || name`)
    other.state.setMeta(meta, 'another digest')
    other.close()
    expect(names(path, table)).toEqual(all)
  },
)
