/** A name as an SQL identifier. Names that come from the API are data: no character of theirs ends the quotes. */
export function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

export function placeholders(count: number): string {
  return Array.from({ length: count }, () => '?').join(', ')
}
