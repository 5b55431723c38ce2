import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import { suggestion } from '../../base/nearest-name.ts'
import { RESOURCE_NAMES, type ResourceName } from '../../declare/resource-names.ts'

/** @throws StopError 64 that suggests the nearest name */
export function parseResourceName(name: string): ResourceName {
  const found = RESOURCE_NAMES.find(known => known === name)
  if (found !== undefined) return found
  throw new StopError(`Unknown resource ${JSON.stringify(name)}`, {
    code: 'unknown-resource',
    hint: `${name === 'all' ? 'Run the command once for each resource. ' : suggestion(name, RESOURCE_NAMES)}The resources are ${RESOURCE_NAMES.join(', ')}.`,
    exitStatus: EXIT_STATUS.usage,
  })
}
