import { describe, expect, onTestFinished, test } from 'vitest'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { temporaryStore } from './temporary-store.ts'

describe('an attempt at a transaction', () => {
  test('an attempt fails while another program writes, and may succeed after that', async () => {
    const store = temporaryStore()
    const other = openSqlite(store.path, { timeout: 0 })
    onTestFinished(() => {
      other.close()
    })
    const write = () => store.state.setMeta('x', 'written')
    other.exec('BEGIN IMMEDIATE')
    const patience = store.db.pragma('busy_timeout', { simple: true })
    expect(store.attempt(write)).toBeUndefined()
    expect(store.db.pragma('busy_timeout', { simple: true })).toBe(patience)
    const freed = store.waitUntilFree()
    other.exec('ROLLBACK')
    expect(await freed).toBe(true)
    expect(store.attempt(write)).toEqual({ value: undefined })
    expect(store.state.meta('x')).toBe('written')
    expect(await store.waitUntilFree()).toBe(false)
  })

  test('an attempt that reads and then writes does not fail because another program wrote before it', () => {
    const store = temporaryStore()
    const other = openSqlite(store.path, { timeout: 0 })
    onTestFinished(() => {
      other.close()
    })
    const done = store.attempt(() => {
      store.column('SELECT count(*) FROM sync_meta')
      // The other program can only write before the attempt or after it.
      expect(() => other.exec("INSERT INTO sync_meta VALUES ('other', '1')")).toThrow('locked')
      store.state.setMeta('x', 'written')
      return 'all'
    })
    expect(done).toEqual({ value: 'all' })
  })

  test('an attempt inside a transaction is part of that transaction', async () => {
    const store = temporaryStore()
    const failed = store.transaction(() => {
      store.attempt(() => store.state.setMeta('x', 'written'))
      throw new Error('undone')
    })
    await expect(failed).rejects.toThrow('undone')
    expect(store.state.meta('x')).toBeUndefined()
  })
})
