import type { CrmRole, CrmRoles, RoleKind } from '../../config/crm-roles.ts'
import { type CrmField, formOf } from '../crm/columns.ts'

/** Finds the field for each role of a CRM object. Pure. */

/** A field of the CRM's metadata, and what is known of its values. */
export interface FieldFacts extends CrmField {
  /** How many live records have a value. */
  filled: number
}

/** The choice of a CRM object for a kind of records, or of a field for one of their roles. */
export interface RoleChoice {
  /** Name of the object or field; undefined when none was chosen. */
  value: string | undefined
  isGuessed: boolean
  /** Why this object or field was chosen, or why none was. */
  why: string
  /** Whether a setting names an object or field that does not exist. */
  isMissing?: true
}

/** A setting with this value says that a role has no field, so that none is guessed. */
export const NO_FIELD = 'none'

export interface FieldQuestion {
  /** Undefined when no object of the CRM holds such records. */
  object: string | undefined
  fields: readonly FieldFacts[]
  /** By role: the field that the settings name, or `NO_FIELD`. */
  set: Readonly<Record<string, string | undefined>>
  /** By role: the field that was guessed before, and why. The guess is kept while the field exists. */
  before: Readonly<Record<string, { value: string; why: string } | undefined>>
  /** The names of the CRM objects that hold companies, stages and pipelines. */
  targets: Readonly<Record<NonNullable<Exclude<CrmRole['to'], 'members'>>, (object: string) => boolean>>
}

export function chooseFields<R extends CrmRoles>(
  roles: R,
  question: FieldQuestion,
): Record<keyof R, RoleChoice> {
  const { set, before } = question
  const wanted = Object.values(set).flatMap(field => field ?? [])
  /** By field: the role that keeps it from an earlier guess. */
  const kept = new Map(
    Object.keys(roles).flatMap(name => {
      const field = set[name] === undefined ? before[name]?.value : undefined
      return field === undefined || wanted.includes(field) ? [] : [[field, name] as const]
    }),
  )
  const taken = new Set(wanted)
  const chosen = Object.entries(roles).map(([name, role]) => {
    const isFree = (field: FieldFacts) =>
      field.isActive && !taken.has(field.name) && (kept.get(field.name) ?? name) === name
    const found = chooseField(name, role, question, isFree)
    if (found.value !== undefined) taken.add(found.value)
    return [name, found] as const
  })
  return Object.fromEntries(chosen) as Record<keyof R, RoleChoice>
}

function chooseField(
  name: string,
  role: CrmRole,
  question: FieldQuestion,
  isFree: (field: FieldFacts) => boolean,
): RoleChoice {
  const { object, set, before } = question
  const fields = question.fields.filter(field => field.isActive)
  const wanted = set[name]
  if (object === undefined)
    return { value: undefined, isGuessed: wanted === undefined, why: 'The CRM has no such object.' }
  const none = (why: string) => ({
    value: undefined,
    why: role.otherwise === undefined ? why : `${why} ${role.otherwise}`,
  })
  if (wanted === NO_FIELD) return { ...none('The settings say that there is none.'), isGuessed: false }
  if (wanted !== undefined) {
    if (fields.some(field => field.name === wanted))
      return { value: wanted, isGuessed: false, why: 'The settings name this field.' }
    const names = fields.map(field => field.name).join(', ')
    const why = `The settings name ${wanted}, which ${object} does not have. It has: ${names || 'no fields'}.`
    return { ...none(why), isGuessed: false, isMissing: true }
  }
  const candidates = fields.filter(field => isFree(field) && isCandidate(field, role, question))
  const kept = before[name]
  if (kept && candidates.some(field => field.name === kept.value)) return { ...kept, isGuessed: true }
  const best = bestOf(candidates, role)
  if (best) return { value: best.name, isGuessed: true, why: whyOf(best, role) }
  return { ...none(`No field of ${object} looks like ${role.holds}.`), isGuessed: true }
}

function isCandidate(field: FieldFacts, { kinds, to }: CrmRole, { targets }: FieldQuestion): boolean {
  const kind = kindOf(field)
  if (!kinds.includes(kind)) return false
  if (kind !== 'relation' || to === undefined) return true
  const { object = null, resource = null } = field.target ?? {}
  if (to === 'members') return resource === 'members'
  return object !== null && targets[to](object)
}

function kindOf({ type, isRelation }: FieldFacts): RoleKind {
  if (isRelation) return 'relation'
  const form = formOf(type)
  return form === 'date' || form === 'timestamp' ? 'day' : form
}

/** The name that fits best wins, among the fields with at least half as many values as the fullest field. */
function bestOf(candidates: readonly FieldFacts[], role: CrmRole): FieldFacts | undefined {
  const named = candidates.filter(field => rankOf(field, role) >= 0)
  // The only relation to a stage, pipeline or company holds the role, whatever its name. Members are related for many
  // reasons.
  const pointsThere = role.to === 'stage' || role.to === 'pipeline'
  const relations = candidates.filter(({ isRelation }) => isRelation)
  const shown =
    named.length === 0 && relations.length === 1 && (pointsThere || role.to === 'company') ? relations : named
  const most = Math.max(0, ...shown.map(({ filled }) => filled))
  const usual = shown.filter(({ filled }) => filled >= most / 2)
  return usual.toSorted((one, other) => rankOf(one, role) - rankOf(other, role))[0]
}

/** The place of the field's name, or else of its label, in the names of the role; -1 when neither is one of them. */
function rankOf({ name, label }: FieldFacts, { names }: CrmRole): number {
  const known = names.map(plain)
  const rank = known.indexOf(plain(name))
  return rank >= 0 || label === null ? rank : known.indexOf(plain(label))
}

/**
 * The name without case, spaces and punctuation, and without the ending that Salesforce gives to fields of a workspace.
 */
export const plain = (name: string): string =>
  name
    .normalize('NFKC')
    .toLowerCase()
    .replace(/__c$/, '')
    .replace(/[^\p{L}\p{N}]/gu, '')

function whyOf({ name, filled }: FieldFacts, { holds }: CrmRole): string {
  const records = filled === 1 ? '1 record has' : `${filled} records have`
  return `Guessed: ${name} looks like ${holds}; ${records} a value.`
}
