import { jsonLine, singleLine } from '../../base/safe-text.ts'
import type { SettingGuess } from '../../config/settings-file.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import { reportTablesIn } from './derived-tables.ts'
import { isNamed } from './stage-outcomes.ts'

/** What is guessed about the CRM and the workspace, because no setting says it. */

export interface ReportGuess {
  /** Name in `report_settings`, or `outcome of PIPELINE / STAGE`. */
  name: string
  value: string
  why: string
}

const GUESSES = `SELECT name, value, why FROM report_settings
WHERE is_guessed AND value IS NOT NULL AND name NOT LIKE '%.object'
UNION ALL
SELECT 'outcome of ' || coalesce(p.pipeline || ' / ', '') || coalesce(s.stage, s.stage_id), s.outcome, s.why
FROM stage_outcomes s LEFT JOIN pipelines p ON p.pipeline_id = s.pipeline_id
WHERE s.is_guessed
ORDER BY name`

/** The guesses; none when there are no tables for reports. */
export const readGuesses = (db: Sqlite): ReportGuess[] =>
  reportTablesIn(db).deals ? db.prepare<unknown[], ReportGuess>(GUESSES).all() : []

/** A setting that would replace a guess. */
export interface GuessedSetting extends SettingGuess {
  key: string
}

/** A text or a list of texts is the same in TOML and in JSON whose control characters are escaped. */
const toml = (value: unknown): string => jsonLine(value).trimEnd()

/** Ordered by key, so that the settings of a section are together. */
export function guessedSettings(db: Sqlite): GuessedSetting[] {
  if (!reportTablesIn(db).deals) return []
  const fields = readGuesses(db)
    .filter(({ name }) => /^(crm|reporting)\./.test(name) && name !== 'crm.deal.status_values')
    .map(({ name, value, why }) => ({
      key: name,
      // A list is stored as JSON.
      value: toml(value.startsWith('[') ? JSON.parse(value) : value),
      why: singleLine(why.replace(/^Guessed: /, '')),
    }))
  return [...fields, ...stageSettings(db)].sort((one, other) => (one.key < other.key ? -1 : 1))
}

interface NamedStage {
  id: string
  name: string | null
  pipeline: string | null
  outcome: string
  is_guessed: number
}

/** `crm.deal.won` and `crm.deal.lost`. A setting that is already set is left out: the file would have it twice. */
function stageSettings(db: Sqlite): GuessedSetting[] {
  const stages = db
    .prepare<unknown[], NamedStage>(
      `SELECT s.stage_id AS id, s.stage AS name, p.pipeline, s.outcome, s.is_guessed
       FROM stage_outcomes s LEFT JOIN pipelines p ON p.pipeline_id = s.pipeline_id
       ORDER BY p.position, p.pipeline, s.position, s.stage, s.stage_id`,
    )
    .all()
  const isSet = db.prepare('SELECT 1 FROM report_settings WHERE name = ? AND value IS NOT NULL')
  return ['won', 'lost'].flatMap(outcome => {
    const key = `crm.deal.${outcome}`
    const guessed = stages.filter(stage => stage.outcome === outcome && stage.is_guessed === 1)
    if (guessed.length === 0 || isSet.get(key) !== undefined) return []
    const value = toml(guessed.map(stage => entryFor(stage, stages)))
    return [{ key, value, why: 'stage_outcomes has the reason for each stage.' }]
  })
}

/** `Pipeline/Stage` when it names no other stage, else the id. */
function entryFor({ id, name, pipeline }: NamedStage, stages: readonly NamedStage[]): string {
  if (name === null) return id
  const entry = pipeline === null ? name : `${pipeline}/${name}`
  return stages.filter(stage => isNamed(entry, stage)).length === 1 ? entry : id
}
