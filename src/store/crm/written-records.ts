import type { Prepare, Sqlite } from '../database/sqlite-types.ts'

/**
 * Notes which CRM records and objects a transaction writes. Temporary triggers of this connection store the notes in
 * temporary tables. Therefore a rollback removes the notes too, and other connections have no such triggers.
 */
export interface WrittenRecords {
  hasAny(): boolean
  /** Objects whose metadata was written. */
  objects(): string[]
  /** Objects with written records. */
  recordObjects(): string[]
  /** The written records of an object. @param upTo id for `NotedRecord.reached` */
  records(object: string, upTo: string): NotedRecord[]
  clear(): void
}

export interface NotedRecord {
  id: string
  /** True when the id is `upTo` or smaller. A table that is filled in the order of ids up to `upTo` is past this id. */
  reached: boolean
  /** False when only `deletedAt` was written; `fields` is then null. */
  whole: boolean
  /** True when `crm_records` no longer has the row. A row that is only marked with `_deleted_at` is still there. */
  gone: boolean
  fields: string | null
  createdAt: string | null
  updatedAt: string | null
  deletedAt: string | null
}

/** The row as SQLite returns it, with booleans as 0 and 1. */
type NotedRow = Omit<NotedRecord, 'reached' | 'whole' | 'gone'> & Record<'reached' | 'whole' | 'gone', number>

const note = (row: string, whole: 0 | 1) =>
  `INSERT INTO noted_crm_records VALUES (${row}.object, ${row}.id, ${whole})
   ON CONFLICT DO ${whole ? 'UPDATE SET whole = 1' : 'NOTHING'};`

const noteObject = (name: string) => `INSERT INTO noted_crm_objects VALUES (${name}) ON CONFLICT DO NOTHING;`

const trigger = (name: string, when: string, body: string) =>
  `CREATE TEMP TRIGGER IF NOT EXISTS noted_${name} AFTER ${when} BEGIN ${body} END;`

const SAME = ['object', 'id', 'fields', 'created_at', 'updated_at']
  .map(column => `OLD.${column} IS NEW.${column}`)
  .join(' AND ')

const SCHEMA = [
  'CREATE TEMP TABLE IF NOT EXISTS noted_crm_records (object TEXT, id TEXT, whole INTEGER, PRIMARY KEY (object, id)) WITHOUT ROWID;',
  'CREATE TEMP TABLE IF NOT EXISTS noted_crm_objects (name TEXT PRIMARY KEY) WITHOUT ROWID;',
  trigger('record_insert', 'INSERT ON main.crm_records', note('NEW', 1)),
  trigger('record_delete', 'DELETE ON main.crm_records', note('OLD', 1)),
  trigger('record_update', `UPDATE ON main.crm_records WHEN NOT (${SAME})`, note('OLD', 1) + note('NEW', 1)),
  trigger(
    'record_mark',
    `UPDATE OF _deleted_at ON main.crm_records WHEN ${SAME} AND OLD._deleted_at IS NOT NEW._deleted_at`,
    note('NEW', 0),
  ),
  trigger('object_insert', 'INSERT ON main.crm_objects', noteObject('NEW.name')),
  trigger('object_delete', 'DELETE ON main.crm_objects', noteObject('OLD.name')),
  trigger('field_insert', 'INSERT ON main.crm_fields', noteObject('NEW.object')),
  trigger('field_delete', 'DELETE ON main.crm_fields', noteObject('OLD.object')),
  trigger(
    'field_update',
    'UPDATE OF position, label, type, is_active, relation_type, relation_target_object, relation_target_resource ON main.crm_fields',
    noteObject('NEW.object'),
  ),
].join('\n')

export function createWrittenRecords(db: Sqlite, prepare: Prepare): WrittenRecords {
  db.exec(SCHEMA)
  const any = prepare(
    'SELECT EXISTS (SELECT 1 FROM noted_crm_records) OR EXISTS (SELECT 1 FROM noted_crm_objects)',
  ).pluck()
  const objects = prepare<string>('SELECT name FROM noted_crm_objects ORDER BY name').pluck()
  const recordObjects = prepare<string>(
    'SELECT DISTINCT object FROM noted_crm_records ORDER BY object',
  ).pluck()
  const records = prepare<NotedRow>(
    `SELECT n.id, n.id <= @upTo AS reached, n.whole, r._id IS NULL AS gone, iif(n.whole, r.fields, NULL) AS fields,
       r.created_at AS createdAt, r.updated_at AS updatedAt, r._deleted_at AS deletedAt
     FROM noted_crm_records n LEFT JOIN crm_records r ON r.object = n.object AND r.id = n.id
     WHERE n.object = @object ORDER BY n.id`,
  )
  const clearing = ['noted_crm_records', 'noted_crm_objects'].map(table => prepare(`DELETE FROM ${table}`))
  return {
    hasAny: () => any.get() === 1,
    objects: () => objects.all(),
    recordObjects: () => recordObjects.all(),
    records: (object, upTo) =>
      records.all({ object, upTo }).map(row => ({
        ...row,
        reached: row.reached === 1,
        whole: row.whole === 1,
        gone: row.gone === 1,
      })),
    clear: () => {
      for (const statement of clearing) statement.run()
    },
  }
}
