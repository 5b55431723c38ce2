/**
 * Ids of the API. The API accepts and returns UUIDs in any case (spec: ids), so the warehouse stores UUIDs in lower
 * case. Ids that are no UUIDs keep their case. Every id that comes from outside goes through this file: fields of
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

/** The id as the warehouse stores it. */
export function canonicalId(id: string): string {
  return isUuid(id) ? id.toLowerCase() : id
}

/**
 * Matches a whole string of a JSON text, but no field name. A quotation mark inside a string follows a backslash, so it
 * starts no match.
 */
const UUID_IN_JSON = new RegExp(`(?<=^|[[,:])"${DIGITS}"(?!:)`, 'gi')

/** JSON without spaces in which each string that is a UUID is in lower case. */
export function withCanonicalIds(json: string): string {
  return json.replace(UUID_IN_JSON, id => id.toLowerCase())
}
