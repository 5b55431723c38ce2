/** A name as a quoted SQL identifier. Names from the API are untrusted, so quotes inside them are doubled. */
export function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

export function placeholders(count: number): string {
  return Array.from({ length: count }, () => '?').join(', ')
}

/** A modifier of SQLite's date functions that moves an instant back. */
export function movedBack(ms: number): string {
  return `-${(ms / 1000).toFixed(3)} seconds`
}
