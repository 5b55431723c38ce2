import type { ResourceName } from './resource-names.ts'

/** What `parley resync` computes again from the rows of the warehouse, without a request. */
export const REPORTS = 'reports'

/** What `parley resync` names. */
export type Resyncable = ResourceName | typeof REPORTS
