import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * These start many processes: that takes 2 ms while a worker is small, and 90 ms when it has grown to a gigabyte. Then
 * files that take a quarter of a minute or more, the longest first: begun last, they would be all that is left to wait for.
 */
const FIRST = [
  'test/migrations/lower-case-ids',
  'test/documents/source-page',
  'test/simulation/',
  'test/daemon/lives/',
  'test/doctor/doctor',
  'test/daemon/starting',
  'test/convergence/interrupted',
  'test/resources/new-resource',
  'test/store/read-only-users',
  'test/documents/demo',
  'test/daemon/reach',
  'test/cli/running-daemon',
  'test/daemon/publications',
  'test/store/busy',
  'test/plan/plan',
  'test/questions/',
  'test/engine/isolated-failures',
  'test/deletions/blips',
  'test/cli/backfill',
  'test/engine/same-instant',
  'test/store/search',
  'test/properties/foreign-text',
  'test/store/crm-tables',
  'test/migrations/upgrade',
  'test/cli/',
  'test/convergence/',
  'test/daemon/',
]

/** Runs the long files first; the others in the usual order. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const rank = ({ moduleId }: TestSpecification) => {
      const index = FIRST.findIndex(part => moduleId.includes(part))
      return index < 0 ? FIRST.length : index
    }
    return sorted.sort((one, other) => rank(one) - rank(other))
  }
}
