import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Files that take a quarter of a minute or more, the longest first: begun last, they would be all that is left to wait for. */
const LONG = [
  'test/simulation/',
  'test/daemon/lives/',
  'test/doctor/doctor',
  'test/daemon/starting',
  'test/convergence/interrupted',
  'test/store/search',
  'test/publish/s3/publication',
  'test/plan/plan',
  'test/resources/new-resource',
  'test/engine/isolated-failures',
  'test/documents/demo',
  'test/daemon/reach',
  'test/api/limits',
  'test/publish/interruptions',
  'test/migrations/upgrade',
  'test/export/',
  'test/engine/same-instant',
  'test/retention/histories',
  'test/store/read-only-users',
  'test/store/busy',
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
