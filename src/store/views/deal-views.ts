import { hasColumn } from '../database/existing-tables.ts'
import { idIn, literal, quote } from '../database/sql.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import type { View } from './replace.ts'

/**
 * Views about CRM deals. The stage history depends on the names of this workspace's CRM fields and tables. The SQL of
 * the views is valid in DuckDB too, over an export, once `CREATE MACRO julianday(t) AS julian(CAST(t AS TIMESTAMP))`
 * has run.
 */

const DEAL = 'deal'
const STAGE = 'stage'

export function dealViews(db: Sqlite): readonly View[] {
  return [
    { name: 'deal_timeline', sql: `CREATE VIEW deal_timeline AS ${DEAL_TIMELINE}` },
    { name: 'deal_stage_history', sql: `CREATE VIEW deal_stage_history AS ${stageHistory(stagesOf(db))}` },
  ]
}

/**
 * One row per event of a deal. When several copies of an e-mail are linked to a deal, only the copy with the smallest
 * id has a row. An activity whose copy is not stored has the kind `activity`, since its e-mail may already have a row.
 * An activity with several links to a deal has one row, that of the DIRECT link if there is one. A deleted deal has no
 * rows. A deal without a stored record has rows for its activities.
 */
const DEAL_TIMELINE = `
SELECT l.context_id AS deal_id, a.occurred_at AS at,
  CAST(CASE WHEN a.source_type = 'MEETING' THEN 'meeting'
    WHEN a.source_type = 'MESSAGE' AND EXISTS (SELECT 1 FROM message_copies c
      WHERE c.id = a.source_id AND c._deleted_at IS NULL) THEN 'message'
    ELSE 'activity' END AS TEXT) AS kind,
  a.type,
  CAST(CASE a.source_type
    WHEN 'MEETING' THEN (SELECT m.title FROM meetings m
      WHERE m.id = a.source_id AND m._deleted_at IS NULL AND coalesce(m.access, '') <> 'withheld')
    WHEN 'MESSAGE' THEN (SELECT m.subject FROM message_copies c
      JOIN messages m ON m.header_message_id = c.mail_id
      WHERE c.id = a.source_id AND c._deleted_at IS NULL)
  END AS TEXT) AS title,
  a.actor_id, (SELECT p.name FROM members p WHERE p.id = a.actor_id) AS actor_name,
  a.source_id, l.origin, NULL AS field, NULL AS old_value, NULL AS new_value
FROM activity_links l JOIN activities a ON a.id = l.activity_id
WHERE l.context_type = '${DEAL}' AND a._deleted_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM crm_records r
    WHERE r.object = l.context_type AND r.id = l.context_id AND r._deleted_at IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM activity_links o
    WHERE o.activity_id = l.activity_id AND o.context_type = l.context_type AND o.context_id = l.context_id
      AND o.origin > l.origin)
  AND NOT (a.source_type = 'MESSAGE' AND EXISTS (SELECT 1 FROM message_copies c
    CROSS JOIN message_copies e CROSS JOIN activities b CROSS JOIN activity_links o
    WHERE c.id = a.source_id AND e.mail_id = c.mail_id AND e.id < c.id AND e._deleted_at IS NULL
      AND b.source_id = e.id AND b.source_type = 'MESSAGE' AND b._deleted_at IS NULL
      AND o.activity_id = b.id AND o.context_type = l.context_type AND o.context_id = l.context_id))
UNION ALL
SELECT c.record_id, c.observed_at, 'change', NULL,
  CAST(coalesce((SELECT f.label FROM crm_fields f WHERE f.object = c.object AND f.name = c.field), c.field) AS TEXT),
  NULL, NULL, c.record_id, NULL, c.field, c.old_value, c.new_value
FROM crm_record_changes c
WHERE c.object = '${DEAL}' AND EXISTS (SELECT 1 FROM crm_records r
  WHERE r.object = c.object AND r.id = c.record_id AND r._deleted_at IS NULL)`.trim()

interface Stages {
  /** The field of a deal that holds the id of its stage. */
  field: string
  /** SQL for the stage of the deal `r` of `crm_records`, and the join that it needs. */
  current: string
  join: string
  /** SQL for the name of a stage. @param id SQL for the stage's id */
  name(id: string): string
}

/** Undefined while deals have no field with their stage. */
function stagesOf(db: Sqlite): Stages | undefined {
  if (!hasColumn(db, 'crm_fields', 'column_name')) return undefined
  const found = db.prepare<unknown[], StageField>(STAGE_FIELD).get()
  if (!found) return undefined
  const { field, table, column } = found
  const named = db.prepare<unknown[], { table: string; column: string }>(NAME_OF_STAGES).get()
  const name = (id: string) =>
    named
      ? `(SELECT n.${quote(named.column)} FROM ${quote(named.table)} n WHERE n."id" = ${id})`
      : `(SELECT coalesce(${fieldIn('n', 'name')}, ${fieldIn('n', 'label')}) FROM crm_records n WHERE n.object = '${STAGE}' AND n.id = ${id})`
  if (table !== null && column !== null)
    return {
      field,
      current: `d.${quote(column)}`,
      join: `JOIN ${quote(table)} d ON d."id" = r.id`,
      name,
    }
  // A path in JSON cannot name this field.
  if (/["\\]/.test(field)) return undefined
  return { field, current: fieldIn('r', field), join: '', name }
}

interface StageField {
  field: string
  /** Null without a typed table, and for a field that has no column in it. */
  table: string | null
  column: string | null
}

/** Finds the field with a deal's stage: the relation to the object `stage`, else the field named `stage_id`. */
const STAGE_FIELD = `
SELECT f.name AS field, o.table_name AS "table", f.column_name AS column
FROM crm_objects o JOIN crm_fields f ON f.object = o.name
WHERE o.name = '${DEAL}' AND (f.relation_target_object = '${STAGE}' OR f.name = 'stage_id') AND instr(f.name, char(0)) = 0
ORDER BY f.relation_target_object IS NOT '${STAGE}', f.is_active = 0, f.name <> 'stage_id', f.position LIMIT 1`

const NAME_OF_STAGES = `
SELECT o.table_name AS "table", f.column_name AS column
FROM crm_objects o JOIN crm_fields f ON f.object = o.name
WHERE o.name = '${STAGE}' AND o.table_name IS NOT NULL AND f.column_name IS NOT NULL
  AND f.name IN ('name', 'label') ORDER BY f.name = 'label' LIMIT 1`

/**
 * SQL that turns a JSON value into an id as the typed table stores it: text, with every digit of a number. Only strings
 * are parsed as JSON, because the whole query would fail at a value that is nested deeper than 1,000 levels.
 */
const idInJson = (json: string) =>
  `CAST(CASE WHEN ${json} GLOB '"*' THEN ${json} ->> '$' ELSE nullif(${json}, 'null') END AS TEXT)`

/** SQL for the id or name in a field of a record. JSON that is nested too deep counts as having none. */
const fieldIn = (record: string, field: string) =>
  idInJson(
    `(CASE WHEN json_valid(${record}.fields) THEN CAST((${record}.fields -> ${literal(`$."${field}"`)}) AS TEXT) END)`,
  )

/** SQL that leaves out changes which only write a UUID in another letter case. */
const isMove = (change: string) =>
  `NOT coalesce(${change}.old_value LIKE '"________-____-____-____-____________"' AND lower(${change}.old_value) = lower(${change}.new_value), false)`

const columnsWith = ({ name }: Stages) => {
  const [from, to] = [idIn('s.from_stage_id'), idIn('s.stage_id')]
  return `s.deal_id, CAST(${from} AS TEXT) AS from_stage_id, CAST(${name(from)} AS TEXT) AS from_stage,
  CAST(${to} AS TEXT) AS stage_id, CAST(${name(to)} AS TEXT) AS stage, s.entered_at, s.left_at, s.known_from,
  CAST(s.left_at IS NULL AS INTEGER) AS is_current,
  CAST(round(julianday(coalesce(s.left_at, CURRENT_TIMESTAMP)) - julianday(s.known_from), 3) AS REAL) AS days`
}

/** One row per stay in a stage: the stage in which each deal was first read, then each change that parley observed. */
function stageHistory(stages: Stages | undefined): string {
  if (!stages) return NO_STAGES
  const field = literal(stages.field)
  // Selects the column itself: with min(), the column of the view would have no declared type.
  const firstChange = (after = '') =>
    `(SELECT n.observed_at FROM crm_record_changes n
    WHERE n.object = '${DEAL}' AND n.record_id = r.id AND n.field = ${field}${after} AND ${isMove('n')}
    ORDER BY n.observed_at LIMIT 1)`
  return `SELECT ${columnsWith(stages)}
FROM (
  SELECT r.id AS deal_id, NULL AS from_stage_id,
    CAST(CASE WHEN c.field IS NULL THEN ${stages.current} ELSE ${idInJson('c.old_value')} END AS TEXT) AS stage_id,
    NULL AS entered_at, c.observed_at AS left_at, r._first_seen_at AS known_from
  FROM crm_records r ${stages.join}
  LEFT JOIN crm_record_changes c ON c.object = '${DEAL}' AND c.record_id = r.id AND c.field = ${field}
    AND c.observed_at = ${firstChange()}
  WHERE r.object = '${DEAL}' AND r._deleted_at IS NULL
  UNION ALL
  SELECT r.id, ${idInJson('c.old_value')}, ${idInJson('c.new_value')}, c.observed_at,
    ${firstChange(' AND n.observed_at > c.observed_at')}, c.observed_at
  FROM crm_records r JOIN crm_record_changes c ON c.object = '${DEAL}' AND c.record_id = r.id AND c.field = ${field}
    AND ${isMove('c')}
  WHERE r.object = '${DEAL}' AND r._deleted_at IS NULL
) s WHERE s.stage_id IS NOT NULL`
}

const NO_STAGES = `SELECT ${[
  ...[
    'deal_id',
    'from_stage_id',
    'from_stage',
    'stage_id',
    'stage',
    'entered_at',
    'left_at',
    'known_from',
  ].map(column => `CAST(NULL AS TEXT) AS ${column}`),
  'CAST(NULL AS INTEGER) AS is_current, CAST(NULL AS REAL) AS days',
].join(', ')} WHERE 0`
