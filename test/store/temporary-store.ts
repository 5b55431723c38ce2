import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { tableNamed } from '../../src/catalog/catalog.ts'
import { compileParser } from '../../src/engine/parse/parse.ts'
import type { StoredItem } from '../../src/store/rows/write-items.ts'
import { type OpenStore, openStore } from '../../src/store/store.ts'
import { writeMigratedFile } from './migrated-file.ts'

export interface TemporaryStore extends OpenStore {
  path: string
  folder: string
  /** A transaction. No other program writes the file. */
  atomically<T>(work: () => T): T
  /** Runs SQL in a transaction. */
  exec(sql: string): void
  /** Parses and stores payloads in a transaction, as answers of one request. */
  put(table: string, payloads: readonly unknown[], options?: PutOptions): StoredItem[]
  /** The same for the answer of a request in flight with this ticket. */
  putAs(table: string, payloads: readonly unknown[], ticket: number, options?: PutOptions): StoredItem[]
  all(sql: string): Record<string, unknown>[]
  column(sql: string): unknown[]
}

export interface PutOptions {
  now?: string
  /** The scope or key of the request. */
  requested?: string
  filled?: readonly string[]
  shownBy?: 'list' | 'single'
  keepsLive?: boolean
  olderSince?: string
}

export const REJECTS_NOTHING = { drift: () => undefined, reject: () => undefined }

export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'parley-store-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export function openAt(path: string, mode = 0o600): OpenStore {
  return openStore({ path, mode, command: 'test', pid: process.pid, clock: systemClock() })
}

export function atomically<T>(store: OpenStore, work: () => T): T {
  const done = store.attempt(work)
  if (!done) throw new Error('another program writes the store of a test')
  return done.value
}

/** A store in a new file, closed and removed when the test ends. */
export function temporaryStore(): TemporaryStore {
  const folder = newFolder()
  const path = join(folder, 'parley.db')
  writeMigratedFile(path)
  const store = openAt(path)
  onTestFinished(() => store.close())
  return withShortcuts(store, folder, path)
}

export function withShortcuts(store: OpenStore, folder: string, path: string): TemporaryStore {
  const putAs: TemporaryStore['putAs'] = (table, payloads, ticket, options = {}) => {
    const { now = '2026-01-01T00:00:00.000Z', requested, ...write } = options
    const parse = compileParser(tableNamed(table))
    return atomically(store, () => {
      const items = payloads.flatMap(payload => parse(payload, REJECTS_NOTHING, requested) ?? [])
      return store.write(table, items, { ticket, now, ...write })
    })
  }
  return {
    ...store,
    atomically: work => atomically(store, work),
    exec: sql => void atomically(store, () => store.db.exec(sql)),
    folder,
    path,
    putAs,
    put(table, payloads, options) {
      const ticket = store.freshness.begin()
      try {
        return putAs(table, payloads, ticket, options)
      } finally {
        store.freshness.end(ticket)
      }
    },
    all: sql => store.db.prepare(sql).all() as Record<string, unknown>[],
    column: sql => store.db.prepare(sql).pluck().all(),
  }
}
