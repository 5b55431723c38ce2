const FORMS: Readonly<Record<string, (value: string) => boolean>> = {
  text: () => true,
  any: () => true,
  timestamp: value => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value),
  date: value => /^\d{4}-\d\d-\d\d$/.test(value),
  json: isJson,
  integer: value => /^-?\d+$/.test(value),
  boolean: value => value === '0' || value === '1',
  real: value => value !== '' && Number.isFinite(Number(value)),
}

function isJson(value: string): boolean {
  try {
    JSON.parse(value)
    return true
  } catch {
    return false
  }
}

/** Whether a value has this type of the dictionary. NULL has no type. */
export function isOfType(type: string, value: unknown): boolean {
  return value !== null && (FORMS[type]?.(String(value)) ?? false)
}
