import type { FieldKind } from '../content/objects.ts'

export const CHANGED_RESOURCES = [
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
export interface Choice {
  id?: string
  ids?: readonly string[]
  count?: number
}

export interface Selection extends Choice {
  resource: ChangedResource
  /** For `crm_records`: the object. Default `deal`. */
  object?: string
}

/**
 * publish: adds items whose event time is the current time; publishLate: adds items whose event time is in the past.
 * An unready meeting has no overview and no transcript yet.
 */
export type Publication = Selection & { kind: 'publish' | 'publishLate'; unready?: boolean }

/** Changes fields that the lists show; `at` (microseconds) moves a message, meeting or activity in time. */
export type Edit = Selection & { kind: 'edit'; at?: number }

/**
 * hide: the item can be revealed again (a restricted record, an inactive member or playbook, an ATTENDEES_ONLY
 * meeting); delete: permanent. The activity of a message gets the same state as the message, unless `keepActivity` is
 * set. The activity of a meeting does so only when the meeting is deleted.
 */
export type StateChange = Selection & { kind: 'hide' | 'delete' | 'reveal'; keepActivity?: boolean }

export type Completion = Choice & { kind: 'completeOverview' | 'completeTranscript' }

export type FieldChange =
  | { kind: 'addField'; object: string; field: string; type?: FieldKind }
  | { kind: 'renameField'; object: string; field: string; to: string }
  | { kind: 'retypeField'; object: string; field: string; type: FieldKind }

export type Change =
  | Publication
  | Edit
  | StateChange
  | Completion
  | FieldChange
  | { kind: 'retireObject'; object: string }
  | { kind: 'editSettings' }

/** The type of the changes of one kind. */
export type ChangeOf<Kind, C = Change> = C extends { kind: infer Kinds }
  ? Kind extends Kinds
    ? C
    : never
  : never

export interface ChangeResult {
  /** Ids of the changed items, or the name of the object. */
  ids: string[]
}
