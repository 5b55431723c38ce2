import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Files that take a quarter of a minute or more, the longest first: begun last, they would be all that is left to wait for. */
const LONG = [
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
  'test/questions/questions',
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
      const index = LONG.findIndex(part => moduleId.includes(part))
      return index < 0 ? LONG.length : index
    }
    return sorted.sort((one, other) => rank(one) - rank(other))
  }
}
