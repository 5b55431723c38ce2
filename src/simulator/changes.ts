import type { FieldKind, ObjectDefinition } from './content/objects.ts'
import type { ItemState, Items } from './items.ts'
import { mix, mixBelow } from './random.ts'
import type { ContextType } from './world/activities.ts'
import { SALT } from './world/scene.ts'
import type { World } from './world/world.ts'

const CHANGED_RESOURCES = [
  'messages',
  'activities',
  'meetings',
  'crm_records',
  'members',
  'teams',
  'collections',
  'playbooks',
] as const
export type ChangedResource = (typeof CHANGED_RESOURCES)[number]

/** The items to change: those with the given ids, or `count` (default 1) that the seed picks from the possible ones. */
export interface Selection {
  resource: ChangedResource
  id?: string
  ids?: readonly string[]
  count?: number
  /** For `crm_records`: the object. Default `deal`. */
  object?: string
}

export type Change =
  /**
   * publish: adds items with the current time as event time; publishLate: with one in the past. An unready meeting has
   * no overview and no transcript yet.
   */
  | (Selection & { kind: 'publish' | 'publishLate'; unready?: boolean })
  /** Changes fields that the lists show; `at` (microseconds) moves a message, meeting or activity in time. */
  | (Selection & { kind: 'edit'; at?: number })
  /**
   * hide: the item can be revealed again (a restricted record, an inactive member or playbook, an ATTENDEES_ONLY
   * meeting); delete: permanent. The activity of a message gets the same state as the message, unless `keepActivity` is
   * set. The activity of a meeting does so only when the meeting is deleted.
   */
  | (Selection & { kind: 'hide' | 'delete' | 'reveal'; keepActivity?: boolean })
  | { kind: 'completeOverview' | 'completeTranscript'; id?: string; ids?: readonly string[]; count?: number }
  | { kind: 'addField'; object: string; field: string; type?: FieldKind }
  | { kind: 'renameField'; object: string; field: string; to: string }
  | { kind: 'retypeField'; object: string; field: string; type: FieldKind }
  | { kind: 'retireObject'; object: string }
  | { kind: 'editSettings' }

export interface ChangeResult {
  /** Ids of the changed items, or the name of the object. */
  ids: string[]
}

export interface Changes {
  /**
   * Throws a RangeError that names the unknown kind, id, object, field or resource, or the deleted item to hide or
   * reveal.
   */
  apply(change: Change): ChangeResult
}

/** Changes that arrive over HTTP can have any kind. */
const unknownKind = ({ kind }: { kind: unknown }): RangeError =>
  new RangeError(`no change has the kind ${kind}`)

export function createChanges(world: World): Changes {
  const { seed, start, end } = world.scene
  let saltOffset = 16
  let lastInstant = 0

  /** Each call returns a later instant, so that items are in the order of their changes. */
  const nextInstant = (): number => {
    lastInstant = Math.max(lastInstant + 1, Math.floor(world.scene.now()))
    return lastInstant
  }
  const draw = (number: number): number => mix(seed, SALT.change + 1 + saltOffset, number)
  const pastInstant = (number: number): number =>
    Math.floor(
      start + (mixBelow(seed, SALT.change + 2 + saltOffset, number, 900_000) / 1_000_000) * (end - start),
    )

  function select(
    items: Items,
    selection: Pick<Selection, 'id' | 'ids' | 'count'>,
    fits: (index: number) => boolean,
  ): number[] {
    const ids = selection.ids ?? (selection.id === undefined ? undefined : [selection.id])
    if (ids) {
      return ids.map(id => {
        const index = items.find(id)
        if (index < 0) throw new RangeError(`no item has the id ${id}`)
        return index
      })
    }
    const chosen = new Set<number>()
    for (let number = 0; number < (selection.count ?? 1); number++) {
      const from = items.count() === 0 ? 0 : draw(number) % items.count()
      for (let step = 0; step < items.count(); step++) {
        const index = (from + step) % items.count()
        if (chosen.has(index) || !fits(index)) continue
        chosen.add(index)
        break
      }
    }
    return [...chosen]
  }

  const itemsOf = (selection: Selection): Items => {
    if (!CHANGED_RESOURCES.includes(selection.resource)) {
      throw new RangeError(
        `resource must be one of ${CHANGED_RESOURCES.join(', ')}, not ${selection.resource}`,
      )
    }
    const { people, messages, meetings, activities, collections, playbooks, records } = world
    if (selection.resource === 'crm_records') {
      const items = records.itemsOf(selection.object ?? 'deal')
      if (!items) throw new RangeError(`no records of the object ${selection.object}`)
      return items
    }
    return {
      messages: messages.items,
      activities: activities.items,
      meetings: meetings.items,
      members: people.members,
      teams: people.teams,
      collections: collections.items,
      playbooks: playbooks.items,
    }[selection.resource]
  }

  const contextOf = (selection: Selection): ContextType | undefined =>
    (['company', 'contact', 'deal'] as const).find(name => name === (selection.object ?? 'deal'))

  function addChangeActivity(selection: Selection, index: number, micros: number): void {
    const record = contextOf(selection)
    if (selection.resource === 'crm_records' && record) {
      world.activities.add({ type: 'OBJECT_CHANGE_EVENT', index, step: 0, record }, micros)
    }
  }

  function publishMail(isLate: boolean, number: number): number {
    const { messages, activities } = world
    const original =
      isLate && number % 2 === 0 ? select(messages.items, {}, messages.items.isPublished)[0] : undefined
    const micros = isLate ? pastInstant(number) : nextInstant()
    const copiedAt =
      original === undefined
        ? micros
        : messages.timeline.timeOf(original) + ((draw(number) % 40) - 8) * 250_000
    const index =
      original === undefined ? messages.addMail(micros, draw(number)) : messages.addCopy(original, copiedAt)
    activities.add({ type: 'MESSAGE', index, step: 0 }, copiedAt)
    return index
  }

  function publishOne(
    change: Selection & { kind: 'publish' | 'publishLate'; unready?: boolean },
    number: number,
  ): number {
    const isLate = change.kind === 'publishLate'
    const { meetings, activities, records } = world
    if (change.resource === 'messages') return publishMail(isLate, number)
    const micros = isLate ? pastInstant(number) : nextInstant()
    if (change.resource === 'meetings') {
      const index = meetings.add(micros, change.unready !== true)
      activities.add({ type: 'MEETING', index, step: 0 }, micros)
      return index
    }
    if (change.resource === 'crm_records') {
      const index = records.add(change.object ?? 'deal', micros)
      addChangeActivity(change, index, micros)
      return index
    }
    if (change.resource === 'activities') {
      const deal = draw(number) % Math.max(1, world.customers.deals.count())
      return activities.add({ type: 'OBJECT_CHANGE_EVENT', index: deal, step: 1, record: 'deal' }, micros)
    }
    return itemsOf(change).add(micros)
  }

  function editOne(change: Selection & { at?: number }, index: number): void {
    const micros = nextInstant()
    itemsOf(change).edit(index, micros)
    addChangeActivity(change, index, micros)
    if (change.at === undefined) return
    const { messages, meetings, activities } = world
    if (change.resource === 'activities') activities.timeline.place(index, change.at)
    if (change.resource !== 'messages' && change.resource !== 'meetings') return
    const isMessage = change.resource === 'messages'
    const source = isMessage ? messages : meetings
    source.timeline.place(index, change.at)
    const activity = activities.ofSource(isMessage ? 'MESSAGE' : 'MEETING', index)
    if (activity >= 0) activities.timeline.place(activity, change.at)
  }

  function setState(change: Selection & { keepActivity?: boolean }, index: number, state: ItemState): void {
    itemsOf(change).setState(index, state)
    const isMeeting = change.resource === 'meetings'
    if (change.keepActivity || (!isMeeting && change.resource !== 'messages')) return
    // An ATTENDEES_ONLY meeting keeps its activity.
    if (isMeeting && state !== 'deleted') return
    const activity = world.activities.ofSource(isMeeting ? 'MEETING' : 'MESSAGE', index)
    if (activity >= 0) world.activities.items.setState(activity, state)
  }

  function changeItems(change: Extract<Change, Selection>): number[] {
    const items = itemsOf(change)
    if (change.kind === 'publish' || change.kind === 'publishLate') {
      return Array.from({ length: change.count ?? 1 }, (_, number) => publishOne(change, number))
    }
    if (change.kind === 'edit') {
      const chosen = select(items, change, items.isPublished)
      for (const index of chosen) editOne(change, index)
      return chosen
    }
    const fits =
      change.kind === 'reveal' ? (index: number) => items.state(index) === 'hidden' : items.isPublished
    const chosen = select(items, change, fits)
    const deleted = chosen.find(index => items.state(index) === 'deleted')
    // Hiding is refused too: a hidden item can be revealed.
    if (deleted !== undefined && change.kind !== 'delete') {
      throw new RangeError(`the item ${items.ids.of(deleted)} is deleted, and deletion is permanent`)
    }
    const state = ({ hide: 'hidden', delete: 'deleted', reveal: 'published' } as const)[change.kind]
    for (const index of chosen) setState(change, index, state)
    return chosen
  }

  function complete(change: Extract<Change, { kind: 'completeOverview' | 'completeTranscript' }>): string[] {
    const { meetings } = world
    const isOverview = change.kind === 'completeOverview'
    const isDone = isOverview ? meetings.isOverviewReady : meetings.hasTranscript
    const chosen = select(
      meetings.items,
      change,
      index => meetings.items.isPublished(index) && !isDone(index),
    )
    for (const index of chosen) (isOverview ? meetings.completeOverview : meetings.completeTranscript)(index)
    return chosen.map(meetings.items.ids.of)
  }

  function objectNamed(name: string): ObjectDefinition {
    const object = world.records.object(name)
    if (!object) throw new RangeError(`no object is named ${name}`)
    return object
  }

  function changeField(change: Extract<Change, { field: string }>): string[] {
    const object = objectNamed(change.object)
    if (change.kind === 'addField') {
      const kind = change.type ?? 'text'
      const type = kind.toUpperCase()
      object.fields.push({
        name: change.field,
        label: change.field,
        type,
        kind,
        isCustom: true,
        isNullable: true,
      })
      return [change.object]
    }
    const field = object.fields.find(each => each.name === change.field)
    if (!field) throw new RangeError(`the object ${change.object} has no field ${change.field}`)
    field.key ??= field.name
    if (change.kind === 'renameField') field.name = change.to
    else Object.assign(field, { kind: change.type, type: change.type.toUpperCase() })
    return [change.object]
  }

  function perform(change: Change): string[] {
    switch (change.kind) {
      case 'publish':
      case 'publishLate':
      case 'edit':
      case 'hide':
      case 'delete':
      case 'reveal':
        return changeItems(change).map(itemsOf(change).ids.of)
      case 'completeOverview':
      case 'completeTranscript':
        return complete(change)
      case 'retireObject':
        world.records.retire(objectNamed(change.object).name)
        return [change.object]
      case 'editSettings':
        world.editSettings()
        return []
      case 'addField':
      case 'renameField':
      case 'retypeField':
        return changeField(change)
      default:
        throw unknownKind(change)
    }
  }

  return {
    apply: change => {
      const ids = perform(change)
      // Only a successful change moves the offset, so that a refused change does not alter later draws.
      saltOffset += 16
      return { ids }
    },
  }
}
