import type { Draw } from '../../torture/draw.ts'
import { idOf, isLinked, LISTS, type ListName, linkTo, OBJECTS, PARTS, pair, type World } from './world.ts'

/** A change of the workspace. Returns what was changed. */
export type Action = (world: World, draw: Draw) => string

const anyOf = <T>(draw: Draw, list: readonly T[]): T | undefined => list[draw.below(list.length)]
const version = (draw: Draw): string => `version ${draw.below(1_000_000)}`

type Change = (value: unknown, draw: Draw, world: World) => unknown

const renamed: Change = (_, draw) => version(draw)

const moved: Change = (time, draw) =>
  new Date(Date.parse(String(time)) + (draw.below(20) - 10) * 3_600_000).toISOString()

/** One change for each list that removes nothing. */
const EDITS: readonly (readonly [ListName, string, Change])[] = [
  ...(['members', 'teams', 'collections', 'playbooks'] as const).map(
    list => [list, 'name', renamed] as const,
  ),
  ['meetings', 'title', renamed],
  ['messages', 'subject', renamed],
  ['activities', 'type', renamed],
  ...OBJECTS.map(name => [name, 'fields', (_: unknown, draw: Draw) => ({ name: version(draw) })] as const),
]

/** Changes of a field that remove something, restore it or move it. */
const TURNS: readonly [ListName, string, Change][] = [
  ['meetings', 'withheld', withheld => !withheld],
  ['meetings', 'overview_status', status => (status === 'COMPLETED' ? 'PROCESSING' : 'COMPLETED')],
  ['playbooks', 'active', active => !active],
  ['messages', 'received_at', moved],
  ['messages', 'text', (_, draw) => draw.pick([null, version(draw)])],
  [
    'messages',
    'header_message_id',
    (_, draw, { rows }) =>
      draw.pick(['', null, version(draw), anyOf(draw, rows.messages)?.['header_message_id']]),
  ],
  ['activities', 'occurred_at', moved],
  ['activities', 'links', (links, draw) => (isLinked(links) ? [] : [linkTo(draw.below(5))])],
]

const field =
  ([list, name, change]: readonly [ListName, string, Change]): Action =>
  (world, draw) => {
    const row = anyOf(draw, world.rows[list])
    if (!row) return `no ${list}`
    row[name] = change(row[name], draw, world)
    // Lists do not show texts: a text is read again only when its message has changed.
    if (name === 'text') row['subject'] = version(draw)
    if ('updated_at' in row) row['updated_at'] = new Date(Date.now() + world.api.aheadMs).toISOString()
    return `${name} of ${list} ${row.id}: ${JSON.stringify(row[name])}`
  }

const remove: Action = ({ rows, deleted }, draw) => {
  const list = draw.pick(LISTS)
  const removed = rows[list].splice(draw.below(rows[list].length), 1)
  deleted.push(...removed.map(row => ({ list, row })))
  return `delete ${list} ${removed[0]?.id}`
}

const restore: Action = ({ rows, deleted }, draw) => {
  const restored = deleted.splice(draw.below(deleted.length), 1)
  for (const { list, row } of restored) rows[list].push(row)
  return `restore ${restored[0]?.list} ${restored[0]?.row.id}`
}

const copyMessage: Action = (world, draw) => {
  const { messages } = world.rows
  const row = anyOf(draw, messages)
  if (!row) return 'no message'
  const id = idOf('messages', 100 + draw.below(1_000_000))
  messages.push({
    ...row,
    id,
    received_at: moved(row['received_at'], draw, world),
    text: draw.pick([row['text'], null]),
  })
  return `copy ${row.id} as ${id}`
}

const changePart: Action = ({ parts }, draw) => {
  const [path, make] = anyOf(draw, [...PARTS]) ?? []
  if (path === undefined || make === undefined) return 'no part'
  const body = draw.pick([undefined, make('first'), make(version(draw)), { data: [] }])
  const isDocument = !path.startsWith('/v1/meetings')
  if (body === undefined || (isDocument && 'data' in body && Array.isArray(body.data))) parts.delete(path)
  else parts.set(path, body)
  return `${path}: ${JSON.stringify(parts.get(path))}`
}

const changePair: Action = ({ pairs }, draw) => {
  const [one, other] = draw.pick([
    [idOf('deal', draw.below(5)), idOf('company', draw.below(3))],
    [idOf('deal', draw.below(5)), idOf('contact', draw.below(4))],
    [idOf('collections', draw.below(3)), idOf('meetings', draw.below(5))],
  ])
  const both = pair(one, other)
  if (!pairs.delete(both)) pairs.add(both)
  return `${pairs.has(both) ? 'join' : 'part'} ${both}`
}

/** Edits a row of each list. */
export const editAll: Action = (world, draw) => EDITS.map(edit => field(edit)(world, draw)).join(', ')

export const ACTIONS: readonly [Action, ...Action[]] = [
  remove,
  restore,
  copyMessage,
  changePart,
  changePart,
  changePair,
  ...TURNS.map(field),
  ...EDITS.map(field),
]
