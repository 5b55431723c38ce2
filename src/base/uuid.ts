/**
 * Ids of the API. It accepts a UUID in any case and may answer in any case (spec: ids), so the warehouse has UUIDs in
 * lower case. Ids that are no UUIDs keep their case. Every id that comes from outside goes through here: fields of
 * answers that hold ids, keys of lists, and ids in webhooks.
 */

const DIGITS = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}'
const UUID = new RegExp(`^${DIGITS}$`, 'i')

/** Matches a UUID, as a pattern for SQLite's GLOB. */
export const UUID_GLOB = [8, 4, 4, 4, 12].map(digits => '[0-9a-fA-F]'.repeat(digits)).join('-')

/** True for a UUID of any version. A list refuses a request if one of its ids is no UUID (spec: ids, related_id). */
export function isUuid(text: string): boolean {
  return UUID.test(text)
}

/** The id as the warehouse has it. */
export function canonicalId(id: string): string {
  return isUuid(id) ? id.toLowerCase() : id
}

/** A whole string of a JSON text, not the name of a field. In a string, a quotation mark follows a backslash. */
const UUID_IN_JSON = new RegExp(`(?<=^|[[,:])"${DIGITS}"(?!:)`, 'gi')

/** JSON without spaces in which each string that is a UUID is in lower case. */
export function withCanonicalIds(json: string): string {
  return json.replace(UUID_IN_JSON, id => id.toLowerCase())
}
