import type { ResourceName } from './resource-names.ts'

/** What `parley resync` computes again from the rows of the warehouse, without a request. */
export const REPORTS = 'reports'

/** The names that `parley resync` accepts. */
export type Resyncable = ResourceName | typeof REPORTS
