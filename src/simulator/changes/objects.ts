import type { ObjectDefinition } from '../content/objects.ts'
import type { World } from '../world/world.ts'
import type { ChangeOf, FieldChange } from './change.ts'
import type { ChangeContext } from './selection.ts'

function objectNamed(world: World, name: string): ObjectDefinition {
  const object = world.records.object(name)
  if (!object) throw new RangeError(`no object is named ${name}`)
  return object
}

export function addField({ world }: ChangeContext, change: ChangeOf<'addField'>): string[] {
  const { object, field: name, type: kind = 'text' } = change
  objectNamed(world, object).fields.push({
    name,
    label: name,
    type: kind.toUpperCase(),
    kind,
    isCustom: true,
    isNullable: true,
  })
  return [object]
}

export function changeField(
  { world }: ChangeContext,
  change: Exclude<FieldChange, { kind: 'addField' }>,
): string[] {
  const field = objectNamed(world, change.object).fields.find(each => each.name === change.field)
  if (!field) throw new RangeError(`the object ${change.object} has no field ${change.field}`)
  field.key ??= field.name
  if (change.kind === 'renameField') field.name = change.to
  else Object.assign(field, { kind: change.type, type: change.type.toUpperCase() })
  return [change.object]
}

export function retireObject({ world }: ChangeContext, { object }: ChangeOf<'retireObject'>): string[] {
  world.records.retire(objectNamed(world, object).name)
  return [object]
}
