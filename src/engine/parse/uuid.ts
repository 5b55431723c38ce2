const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** The same as a pattern for SQLite's GLOB. */
export const UUID_GLOB = [8, 4, 4, 4, 12].map(digits => '[0-9a-fA-F]'.repeat(digits)).join('-')

/** A list refuses the whole request for one id that is no UUID (spec: ids, related_id). Any version is allowed. */
export function isUuid(text: string): boolean {
  return UUID.test(text)
}
