import type { Change } from '../../../src/simulator/changes/change.ts'
import type { Draw } from '../../torture/draw.ts'

/** A small change of the workspace, drawn at random. */
export const drawChange = (draw: Draw): Change => draw.pick(CHANGES)(draw)

type MakeChange = (draw: Draw) => Change

const RESOURCES = [
  'messages',
  'activities',
  'meetings',
  'crm_records',
  'members',
  'teams',
  'collections',
  'playbooks',
] as const
/** No contacts: a new one changes the texts of old e-mails in the simulator, which no list shows. */
const OBJECTS = ['deal', 'company', 'renewal', 'order', 'Order'] as const

/** Few enough at once that the mass-deletion guard holds no change back. */
const changeItems: MakeChange = draw => ({
  kind: draw.pick(['publish', 'publishLate', 'edit', 'hide', 'delete', 'reveal'] as const),
  resource: draw.pick(RESOURCES),
  object: draw.pick(OBJECTS),
  count: 1 + draw.below(3),
  ...(draw.below(4) === 0 && { keepActivity: true }),
  ...(draw.below(4) === 0 && { unready: true }),
})

const CHANGES: readonly [MakeChange, ...MakeChange[]] = [
  changeItems,
  changeItems,
  changeItems,
  changeItems,
  changeItems,
  // Meetings that become ATTENDEES_ONLY, and members who leave.
  draw => ({ kind: 'hide', resource: draw.pick(['meetings', 'members'] as const) }),
  // An activity reports each change of a record.
  draw => ({
    kind: draw.pick(['publish', 'edit', 'delete'] as const),
    resource: 'crm_records',
    object: draw.pick(['deal', 'company'] as const),
  }),
  draw => ({
    kind: draw.pick(['edit', 'hide', 'delete', 'reveal'] as const),
    resource: 'crm_records',
    object: 'contact',
  }),
  draw => ({ kind: draw.pick(['completeOverview', 'completeTranscript'] as const), count: 2 }),
  () => ({ kind: 'editSettings' }),
  draw => ({
    kind: 'addField',
    object: draw.pick(OBJECTS),
    field: `added ${draw.below(1_000_000)}`,
    type: draw.pick(['huge', 'text', 'list'] as const),
  }),
]
