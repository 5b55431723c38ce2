import { literal } from '../database/sql.ts'
import type { StoredSettings } from './report-settings.ts'

/**
 * SQL for the columns that `deals` (today) and `deal_versions` (any day) share, so that the columns mean the same in
 * both.
 */

/** The roles of deals. A deal without a pipeline gets that of its stage. @param roles a subquery with the roles */
export const withPipelines = (roles: string): string =>
  `(SELECT r.*, CAST(coalesce(r.pipeline, o.pipeline_id) AS TEXT) AS pipeline_id
    FROM ${roles} r LEFT JOIN stage_outcomes o ON o.stage_id = r.stage)`

/** @returns SQL by column, over the roles `x` and the row `s` of `stage_outcomes` for the deal's stage */
export const dealColumns = (settings: StoredSettings) => ({
  pipeline_id: 'x.pipeline_id',
  stage_id: 'CAST(x.stage AS TEXT)',
  stage: 'CAST(coalesce(s.stage, x.stage) AS TEXT)',
  amount: 'x.amount',
  currency: 'CAST(upper(x.currency) AS TEXT)',
  close_date: 'CAST(x.close_date AS TEXT)',
  owner_id: 'CAST(x.owner AS TEXT)',
  forecast_category: 'x.forecast_category',
  outcome: `CAST(CASE WHEN s.is_guessed = 0 THEN s.outcome
      ELSE coalesce(${outcomeOfRoles(
        JSON.parse(settings.get('crm.deal.status_values') || '{}'),
        "iif(s.outcome IN ('won', 'lost'), s.outcome, 'closed')",
      )}, s.outcome, 'unknown') END AS TEXT)`,
})

/** The values of the deals' status, by the outcome that they mean. */
export type StatusValues = Readonly<Record<string, readonly string[]>>

/**
 * SQL for the outcome that the roles `x` of a deal state by themselves; NULL when they state none.
 * @param closed SQL for the outcome of a deal that is closed and states no more
 */
export function outcomeOfRoles(statusValues: StatusValues, closed: string): string {
  const byStatus = Object.entries(statusValues)
    .filter(([, values]) => values.length > 0)
    .map(([outcome, values]) => `WHEN x.status IN (${values.map(literal).join(', ')}) THEN '${outcome}'`)
  return `CASE WHEN x.is_won = 1 THEN 'won'
      WHEN x.is_won = 0 AND x.is_closed = 1 THEN 'lost'
      ${byStatus.join(' ')}
      WHEN x.is_closed = 0 THEN 'open'
      WHEN x.is_closed = 1 THEN ${closed} END`
}
