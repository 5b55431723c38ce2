import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'
import { newFolder, type ParleyProcess, startParley } from '../support/parley-process.ts'
import { type ScriptedApi, startScriptedApi, v2Page } from '../support/scripted-api.ts'
import { compareTypedTables } from '../support/typed-tables.ts'

const FIELDS = 100
const RECORDS = 1500
const PAGE = 500

/** An object whose table takes long to fill, and whose fields have other types at every read. */
async function startWorkspace(): Promise<ScriptedApi> {
  const api = await startScriptedApi()
  const names = Array.from({ length: FIELDS }, (_, index) => `field_${index}`)
  let round = 0
  const typeOf = (index: number) => ((round + index) % 2 === 0 ? 'TEXT' : 'NUMBER')
  const record = (index: number) => ({
    id: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
    object: 'deal',
    // Some at either end change with the rounds.
    fields: Object.fromEntries(names.map(name => [name, index % 1000 < 5 ? round : index])),
  })
  api.on('/v2/objects', () => ({ body: { data: [{ name: 'deal' }] } }))
  api.on('/v2/objects/deal', () => {
    round += 1
    return { body: { name: 'deal', fields: names.map((name, index) => ({ name, type: typeOf(index) })) } }
  })
  api.on('/v2/objects/deal/records', ({ query }) => {
    const from = Number(query['cursor'] ?? 0)
    const page = Array.from({ length: PAGE }, (_, index) => record(from + index))
    return v2Page(page, from + PAGE < RECORDS ? String(from + PAGE) : undefined)
  })
  return api
}

function look<T>(database: string, read: (db: Sqlite) => T): T {
  const db = openSqlite(database, { readonly: true })
  onTestFinished(() => {
    db.close()
  })
  return read(db)
}

/** The number of rows of the table that is being filled; 0 without one. */
function rowsFilled(db: Sqlite): number {
  const isThere = db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'sync_crm_next'").get()
  return isThere ? Number(db.prepare('SELECT count(*) FROM sync_crm_next').pluck().get()) : 0
}

const isHalf = (rows: number) => rows > 0 && rows < RECORDS

/** Returns whether it was killed in the middle of filling a table. */
async function killHalfway(parley: ParleyProcess, database: string): Promise<boolean> {
  let isOver = false
  const over = parley.ended.then(() => {
    isOver = true
  })
  await look(database, async db => {
    while (!isOver && !isHalf(rowsFilled(db))) await turn()
  })
  parley.kill('SIGKILL')
  await over
  return look(database, db => isHalf(rowsFilled(db)))
}

test.each(['backfill', 'daemon'])(
  'a typed table equals the records after a %s that filled it was killed and repeated',
  async command => {
    const api = await startWorkspace()
    const database = join(newFolder(), 'parley.db')
    const service = { url: api.url, apiKey: 'key', workspaceId: 'workspace' }
    const env = {
      PARLEY_HTTP_LISTEN: 'off',
      PARLEY_SYNC_RESOURCES: 'crm_objects,crm_records',
      PARLEY_SYNC_INTERVAL_SCALE: '0.0001',
    }
    const start = (name: string) => {
      const parley = startParley([name, '--database', database], service, env)
      onTestFinished(() => parley.kill('SIGKILL'))
      return parley
    }
    expect(await start('backfill').ended).toMatchObject({ status: 0 })
    let isHit = false
    for (let tries = 0; tries < 5 && !isHit; tries++) isHit = await killHalfway(start(command), database)
    expect(isHit).toBe(true)

    expect(await start('backfill').ended).toMatchObject({ status: 0 })
    look(database, db => {
      expect(compareTypedTables(db)).toEqual([])
      expect(db.prepare('SELECT count(*) FROM live_crm_deal').pluck().get()).toBe(RECORDS)
      expect(db.prepare("SELECT name FROM sqlite_master WHERE name GLOB 'sync_crm*'").all()).toEqual([])
    })
  },
)
