/** Where a parser reports payloads that do not fit the declarations. */
export interface ParseReport {
  /** A field without a column, or a value that does not fit. Values, and names that may be values, are not reported. */
  drift(table: string, field: string, reason: 'unknown field' | 'unexpected type'): void
  /** `within`: the key of the row that the item belongs to, where it is known. */
  reject(table: string, item: unknown, reason: string, within?: string): void
}
