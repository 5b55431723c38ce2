import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { octalMode } from '../config/kinds.ts'
import type { ApiSettings } from '../config/loaded-settings.ts'
import type { TypedTableChange } from '../store/crm/typed-tables.ts'
import type { LeftOut } from '../store/database/existing-tables.ts'
import { SHARE_ADVICE, shareOf } from '../store/disk/location.ts'
import { holdersText, walReaders } from '../store/disk/lock-holders.ts'
import type { HeldLock } from '../store/file/lock.ts'
import type { ModeChange } from '../store/file/open.ts'
import { type Workspace, workspaceOf } from '../store/file/workspace.ts'
import type { Upgrade } from '../store/migrations/migrate.ts'
import { type OpenStore, openStoreWhenFree } from '../store/store.ts'

export interface LoggedStoreOptions {
  settings: ApiSettings
  clock: Clock
  log: Log
  /** `--workspace-renamed`: the workspace in the database has a new id, which the settings give. */
  isWorkspaceRenamed?: boolean
  /** The command and process id that another process sees when it finds the database locked. */
  command: string
  pid: number
  /** The lock of the database, when the caller holds it already and keeps it after `close`. */
  held?: HeldLock
  /** Called with the milliseconds for which each transaction blocked the event loop. */
  onTransaction?: (ms: number) => void
}

/**
 * Opens the database of the settings for writing, and logs what that changes.
 * @throws StopError with exit status 73 when the database cannot be opened, 75 when another process holds its lock
 */
export async function openLoggedStore({
  settings: { api, database, crm },
  isWorkspaceRenamed = false,
  log,
  ...opening
}: LoggedStoreOptions): Promise<OpenStore> {
  warnOfShare(log, database.path)
  const store = await openStoreWhenFree({
    ...opening,
    path: database.path,
    mode: database.mode,
    crmTables: crm.tables,
    workspace: { id: api.workspaceId, baseUrl: api.baseUrl, isRenamed: isWorkspaceRenamed },
    onUpgrade: upgrade => logUpgrade(log, upgrade),
    onLeftOut: object => logLeftOut(log, object),
    onTypedTable: change => logTypedTable(log, change),
    onMode: change => logModeChange(log, change),
    onDamagedSearch: () =>
      log.warn('A full-text index of the search is damaged; it is built again from the rows', {
        path: database.path,
      }),
    onWalHeld: bytes => logHeldWal(log, database.path, bytes),
  })
  warnOfOtherAddress(log, workspaceOf(store.db), api)
  return store
}

function warnOfShare(log: Log, path: string): void {
  const share = shareOf(path)
  if (share !== undefined)
    log.warn('The database is not on a local disk', { path, reason: `It is on ${share}. ${SHARE_ADVICE}` })
}

function logHeldWal(log: Log, path: string, bytes: number): void {
  const reader = holdersText(walReaders(path), 'another program')
  const reason = `an older state of the database is being read by ${reader}`
  log.warn('The write-ahead log cannot shrink until a reader ends its transaction', { path, bytes, reason })
}

function logUpgrade(log: Log, { copy }: Upgrade): void {
  if (copy === undefined) log.info('Migrating the database from an older version')
  else
    log.info(
      'Migrating the database from an older version; its copy from before the upgrade is at this path',
      { path: copy.path, bytes: copy.bytes },
    )
}

function logLeftOut(log: Log, { type, name, table, reason }: LeftOut): void {
  log.warn(
    'Dropped a view, trigger or index that parley did not create: it does not fit the changed tables',
    {
      table,
      reason: `${type} ${name}: ${reason}`,
    },
  )
}

function warnOfOtherAddress(log: Log, held: Workspace | undefined, { baseUrl }: ApiSettings['api']): void {
  if (held === undefined || held.base_url === baseUrl) return
  log.warn(
    'The database was last filled from another address; check that api.base_url serves the same workspace',
    {
      address: held.base_url,
      setting: 'api.base_url',
    },
  )
}

function logTypedTable(log: Log, { kind, ...fields }: TypedTableChange): void {
  if (kind === 'replaced') log.info('A typed CRM table was replaced', fields)
  else if (kind === 'dropped') log.info('A typed CRM table was dropped', fields)
  else
    log.warn(
      'A typed CRM table was dropped; it is created again when its metadata changes or at the next start',
      fields,
    )
}

function logModeChange(log: Log, { path, found, wanted, isApplied }: ModeChange): void {
  const reason = `found ${octalMode(found)}, expected ${octalMode(wanted)} (database.mode)`
  const fields = { path, reason, setting: 'database.mode' }
  if (isApplied) log.info('Changed the mode of a database file', fields)
  else
    log.warn(
      'The mode of a database file differs from database.mode, and only the owner of the file can change it',
      fields,
    )
}
