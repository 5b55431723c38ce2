import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import { suggestion } from '../../base/nearest-name.ts'

/** @throws StopError (exit status 64) for an unknown name; the hint suggests the nearest name */
export function parseResourceName<Name extends string>(name: string, names: readonly Name[]): Name {
  const found = names.find(known => known === name)
  if (found !== undefined) return found
  throw new StopError(`Unknown resource ${JSON.stringify(name)}`, {
    code: 'unknown-resource',
    hint: `${name === 'all' ? 'Run the command once for each resource. ' : suggestion(name, names)}The resources are ${names.join(', ')}.`,
    exitStatus: EXIT_STATUS.usage,
  })
}
