const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** Matches a UUID, as a pattern for SQLite's GLOB. */
export const UUID_GLOB = [8, 4, 4, 4, 12].map(digits => '[0-9a-fA-F]'.repeat(digits)).join('-')

/** True for a UUID of any version. A list refuses a request if one of its ids is no UUID (spec: ids, related_id). */
export function isUuid(text: string): boolean {
  return UUID.test(text)
}
