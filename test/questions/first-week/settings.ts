/** How the company of these questions works. The answers assume it, and the warehouse must be set up the same way. */
export interface CompanySettings {
  timeZone: string
  /** The zone has no summer time. */
  utcOffsetHours: number
  /** Month in which the fiscal year begins. The year is named by its start. */
  fiscalYearStartMonth: number
  /** 1 is Monday, 7 is Sunday. Weeks begin on Monday. */
  workdays: readonly number[]
  /** Working hours of a workday, local time. */
  workFromHour: number
  workToHour: number
  reportingCurrency: string
  /** Value of one unit in the reporting currency. */
  rates: Readonly<Record<string, number>>
  freeMailDomains: readonly string[]
  /** Companies that work with us. Their people are neither ours nor customers. */
  partnerDomains: readonly string[]
  /** Names of the pipelines for renewals. */
  renewalPipelines: readonly string[]
}

export const SETTINGS: CompanySettings = {
  timeZone: 'Asia/Tokyo',
  utcOffsetHours: 9,
  fiscalYearStartMonth: 4,
  workdays: [1, 2, 3, 4, 5],
  workFromHour: 9,
  workToHour: 18,
  reportingCurrency: 'EUR',
  rates: { EUR: 1, USD: 0.9, JPY: 0.006 },
  freeMailDomains: ['gmail.com', 'yahoo.co.jp'],
  partnerDomains: ['lakeside-foods-1.example'],
  renewalPipelines: ['Renewals'],
}
