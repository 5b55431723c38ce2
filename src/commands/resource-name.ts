import { RESOURCE_NAMES, type ResourceName } from '../catalog/resource-names.ts'
import { EXIT_STATUS, StopError } from '../errors.ts'
import { suggestion } from '../nearest-name.ts'

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
