import type { Log } from '../base/log.ts'
import { WEEKDAYS } from '../config/kinds.ts'
import type { Settings } from '../config/load-settings.ts'
import { foreignReportObjects } from '../store/reporting/derived-tables.ts'
import type { ReportConfig } from '../store/reporting/report-settings.ts'
import type { OpenStore } from '../store/store.ts'

const USUAL_WORKDAYS = [1, 2, 3, 4, 5]

export type ReportConfigSettings = Pick<
  Settings,
  'reporting' | 'crm' | 'crmDeal' | 'crmCompany' | 'crmContact'
>

/** Selects what the settings say about the tables and views for reports. Pure. */
export function reportConfig({
  reporting,
  crm,
  crmDeal,
  crmCompany,
  crmContact,
}: ReportConfigSettings): ReportConfig {
  const { won, lost, ...deal } = crmDeal
  const fieldsOf = ({ object: _, ...fields }: Readonly<Record<string, string | undefined>>) =>
    Object.fromEntries(Object.entries(fields).map(([name, field]) => [snakeCase(name), field]))
  return {
    calendar: {
      timeZone: reporting.timeZone,
      weekStart: WEEKDAYS.indexOf(reporting.weekStart) + 1,
      fiscalYearStart: reporting.fiscalYearStart,
      fiscalYearNamedBy: reporting.fiscalYearNamedBy,
      workdays: reporting.workdays ?? USUAL_WORKDAYS,
      holidays: reporting.holidays ?? [],
      workFrom: reporting.workFrom,
      workTo: reporting.workTo,
    },
    internalDomains: reporting.internalDomains,
    partnerDomains: reporting.partnerDomains ?? [],
    replyLimitDays: reporting.replyLimitDays,
    currency: reporting.currency,
    rates: reporting.rates,
    salesPipelines: crm.salesPipelines,
    renewalPipelines: crm.renewalPipelines,
    won,
    lost,
    objects: { deal: deal.object, company: crmCompany.object, contact: crmContact.object },
    fields: {
      deal: fieldsOf(deal),
      company: fieldsOf(crmCompany),
      contact: fieldsOf(crmContact),
    },
  }
}

const snakeCase = (name: string): string => name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)

/**
 * Returns a function that brings the tables and views for reports up to date. When they are computed, it logs that there
 * are none since somebody else has their names, and that settings about them match nothing in the CRM. The function throws a StopError (exit status 73 or 75).
 */
export function createReportUpdate(
  { store, log }: { store: Pick<OpenStore, 'reports' | 'db'>; log: Log },
  settings: ReportConfigSettings,
): () => Promise<void> {
  const config = reportConfig(settings)
  return async () => {
    const problems = await store.reports.update(config)
    if (problems === undefined) return
    if (foreignReportObjects(store.db).length > 0)
      log.warn(
        'Tables and views for reports are missing, since somebody else has made some with these names; parley doctor names them',
      )
    if (problems.length > 0)
      log.warn('Settings of the tables for reports fit nothing in the CRM; parley doctor names them', {
        pending: problems.length,
      })
  }
}
