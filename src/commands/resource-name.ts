import { EXIT_STATUS, StopError } from '../errors.ts'
import { nearest } from '../nearest.ts'
import { RESOURCE_NAMES, type ResourceName } from '../resource.ts'

/**
 * The resource of that name.
 * @param said what named it, such as `--skip names`
 * @throws StopError (64) that tells the nearest name
 */
export function resourceCalled(name: string, said: string): ResourceName {
  const found = RESOURCE_NAMES.find(known => known === name)
  if (found !== undefined) return found
  const guess = nearest(name, RESOURCE_NAMES)
  throw new StopError(`${said} no resource: ${JSON.stringify(name)}`, {
    code: 'unknown-resource',
    hint: `${guess === undefined ? '' : `Did you mean ${guess}? `}The resources are ${RESOURCE_NAMES.join(', ')}.`,
    exitStatus: EXIT_STATUS.usage,
  })
}
