import { canonicalId } from '../../base/uuid.ts'

/** The key of a list's item; the item may be a bare key. Pure. */
export function keyOf(item: unknown, fields: readonly string[]): string | undefined {
  const key = sentKeyOf(item, fields)
  return key === undefined ? undefined : canonicalId(key)
}

function sentKeyOf(item: unknown, fields: readonly string[]): string | undefined {
  if (typeof item === 'string') return isKey(item) ? item : undefined
  if (typeof item !== 'object' || item === null) return undefined
  const entries = new Map(Object.entries(item))
  const keys = fields.map(field => entries.get(field))
  return keys.find(isKey)
}

/** Half a surrogate pair has no UTF-8 form: neither a request nor the database would keep the key as it is. */
function isKey(key: unknown): key is string {
  return typeof key === 'string' && key !== '' && key.isWellFormed()
}
