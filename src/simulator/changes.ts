import type { FieldKind } from './content/objects.ts'
import { mix, mixBelow } from './draw.ts'
import type { ItemState, Shelf } from './shelf.ts'
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

/** Which items: those named, or `count` (1) drawn by seed among those that the change fits. */
export interface Choice {
  resource: ChangedResource
  id?: string
  ids?: readonly string[]
  count?: number
  /** Of `crm_records`: the object; `deal` when not given. */
  object?: string
}

export type Change =
  /** New items now, or with an event time long ago. An unready meeting has no overview and no transcript yet. */
  | (Choice & { kind: 'publish' | 'publishLate'; unready?: boolean })
  /** Other values in fields that the lists show; `at` (microseconds) moves a message, meeting or activity in time. */
  | (Choice & { kind: 'edit'; at?: number })
  /**
   * hide: what can be revealed again (a restricted record, an inactive member or playbook, an ATTENDEES_ONLY meeting);
   * delete: gone for good. The activity of a message or deleted meeting goes and comes with it, unless kept.
   */
  | (Choice & { kind: 'hide' | 'delete' | 'reveal'; keepActivity?: boolean })
  | { kind: 'completeOverview' | 'completeTranscript'; id?: string; ids?: readonly string[]; count?: number }
  | { kind: 'addField'; object: string; field: string; type?: FieldKind }
  | { kind: 'renameField'; object: string; field: string; to: string }
  | { kind: 'retypeField'; object: string; field: string; type: FieldKind }
  | { kind: 'retireObject'; object: string }
  | { kind: 'editSettings' }

export interface ChangeResult {
  /** Ids of the items that the change touched. */
  ids: string[]
}

export interface Changes {
  /** Throws a RangeError that names what is unknown. */
  apply(change: Change): ChangeResult
}

export function createChanges(world: World): Changes {
  const { seed, start, end } = world.scene
  let turn = 16
  let lastMade = 0

  /** Instants of new items never repeat, so that their order is that of the changes. */
  const made = (): number => {
    lastMade = Math.max(lastMade + 1, Math.floor(world.scene.now()))
    return lastMade
  }
  const draw = (number: number): number => mix(seed, SALT.change + 1 + turn, number)
  const longAgo = (number: number): number =>
    Math.floor(start + (mixBelow(seed, SALT.change + 2 + turn, number, 900_000) / 1_000_000) * (end - start))

  function choose(
    shelf: Shelf,
    choice: Pick<Choice, 'id' | 'ids' | 'count'>,
    fits: (index: number) => boolean,
  ): number[] {
    const ids = choice.ids ?? (choice.id === undefined ? undefined : [choice.id])
    if (ids) {
      return ids.map(id => {
        const index = shelf.find(id)
        if (index < 0) throw new RangeError(`no item has the id ${id}`)
        return index
      })
    }
    const chosen = new Set<number>()
    for (let number = 0; number < (choice.count ?? 1); number++) {
      const from = shelf.count() === 0 ? 0 : draw(number) % shelf.count()
      for (let step = 0; step < shelf.count(); step++) {
        const index = (from + step) % shelf.count()
        if (chosen.has(index) || !fits(index)) continue
        chosen.add(index)
        break
      }
    }
    return [...chosen]
  }

  const shelfOf = (choice: Choice): Shelf => {
    if (!CHANGED_RESOURCES.includes(choice.resource)) {
      throw new RangeError(`resource must be one of ${CHANGED_RESOURCES.join(', ')}, not ${choice.resource}`)
    }
    const { people, messages, meetings, activities, collections, playbooks, records } = world
    if (choice.resource === 'crm_records') {
      const shelf = records.shelf(choice.object ?? 'deal')
      if (!shelf) throw new RangeError(`no records of the object ${choice.object}`)
      return shelf
    }
    return {
      messages: messages.shelf,
      activities: activities.shelf,
      meetings: meetings.shelf,
      members: people.members,
      teams: people.teams,
      collections: collections.shelf,
      playbooks: playbooks.shelf,
    }[choice.resource]
  }

  const contextOf = (choice: Choice): ContextType | undefined =>
    (['company', 'contact', 'deal'] as const).find(name => name === (choice.object ?? 'deal'))

  function recordChanged(choice: Choice, index: number, micros: number): void {
    const record = contextOf(choice)
    if (choice.resource === 'crm_records' && record) {
      world.activities.add({ type: 'OBJECT_CHANGE_EVENT', index, step: 0, record }, micros)
    }
  }

  function publishMail(isLate: boolean, number: number): number {
    const { messages, activities } = world
    const original =
      isLate && number % 2 === 0 ? choose(messages.shelf, {}, messages.shelf.isPublished)[0] : undefined
    const micros = isLate ? longAgo(number) : made()
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
    change: Choice & { kind: 'publish' | 'publishLate'; unready?: boolean },
    number: number,
  ): number {
    const isLate = change.kind === 'publishLate'
    const { meetings, activities, records } = world
    if (change.resource === 'messages') return publishMail(isLate, number)
    const micros = isLate ? longAgo(number) : made()
    if (change.resource === 'meetings') {
      const index = meetings.add(micros, change.unready !== true)
      activities.add({ type: 'MEETING', index, step: 0 }, micros)
      return index
    }
    if (change.resource === 'crm_records') {
      const index = records.add(change.object ?? 'deal', micros)
      recordChanged(change, index, micros)
      return index
    }
    if (change.resource === 'activities') {
      const deal = draw(number) % Math.max(1, world.customers.deals.count())
      return activities.add({ type: 'OBJECT_CHANGE_EVENT', index: deal, step: 1, record: 'deal' }, micros)
    }
    return shelfOf(change).add(micros)
  }

  function editOne(change: Choice & { at?: number }, index: number): void {
    const micros = made()
    shelfOf(change).edit(index, micros)
    recordChanged(change, index, micros)
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

  function setState(change: Choice & { keepActivity?: boolean }, index: number, state: ItemState): void {
    shelfOf(change).setState(index, state)
    const isMeeting = change.resource === 'meetings'
    if (change.keepActivity || (!isMeeting && change.resource !== 'messages')) return
    // An ATTENDEES_ONLY meeting is still in the timeline.
    if (isMeeting && state !== 'deleted') return
    const activity = world.activities.ofSource(isMeeting ? 'MEETING' : 'MESSAGE', index)
    if (activity >= 0) world.activities.shelf.setState(activity, state)
  }

  function changeItems(change: Extract<Change, Choice>): number[] {
    const shelf = shelfOf(change)
    if (change.kind === 'publish' || change.kind === 'publishLate') {
      return Array.from({ length: change.count ?? 1 }, (_, number) => publishOne(change, number))
    }
    if (change.kind === 'edit') {
      const chosen = choose(shelf, change, shelf.isPublished)
      for (const index of chosen) editOne(change, index)
      return chosen
    }
    const fits =
      change.kind === 'reveal' ? (index: number) => shelf.state(index) === 'hidden' : shelf.isPublished
    const chosen = choose(shelf, change, fits)
    const state = ({ hide: 'hidden', delete: 'deleted', reveal: 'published' } as const)[change.kind]
    for (const index of chosen) setState(change, index, state)
    return chosen
  }

  function complete(change: Extract<Change, { kind: 'completeOverview' | 'completeTranscript' }>): string[] {
    const { meetings } = world
    const isOverview = change.kind === 'completeOverview'
    const isDone = isOverview ? meetings.isOverviewReady : meetings.hasTranscript
    const chosen = choose(
      meetings.shelf,
      change,
      index => meetings.shelf.isPublished(index) && !isDone(index),
    )
    for (const index of chosen) (isOverview ? meetings.completeOverview : meetings.completeTranscript)(index)
    return chosen.map(meetings.shelf.ids.of)
  }

  function changeField(change: Extract<Change, { field: string }>): string[] {
    const object = world.records.object(change.object)
    if (!object) throw new RangeError(`no object is named ${change.object}`)
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
    if ('resource' in change) return changeItems(change).map(shelfOf(change).ids.of)
    switch (change.kind) {
      case 'completeOverview':
      case 'completeTranscript':
        return complete(change)
      case 'retireObject':
        world.records.retire(change.object)
        return [change.object]
      case 'editSettings':
        world.editSettings()
        return []
      default:
        return changeField(change)
    }
  }

  return {
    apply: change => {
      const ids = perform(change)
      // One that was refused leaves no trace, not even in what is drawn later.
      turn += 16
      return { ids }
    },
  }
}
