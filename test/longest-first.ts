import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Files that take a quarter of a minute or more, the longest first: begun last, they would be all that is left to wait for. */
const LONG = [
  'test/daemon/lives/',
  'test/simulation/',
  'test/daemon/starting',
  'test/convergence/interrupted',
  'test/plan/plan',
  'test/daemon/cli.test',
  'test/doctor/doctor',
  'test/daemon/cli-server',
  'test/daemon/reach',
  'test/store/read-only-users',
  'test/cli/export',
  'test/engine/isolated-failures',
  'test/deletions/blips',
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
