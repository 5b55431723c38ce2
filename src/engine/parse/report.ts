/** Where a parser reports payloads that do not fit the declarations. */
export interface ParseReport {
  /**
   * Reports a field without a column, or a value that does not fit its column. `field` never contains a value, nor a
   * name that may be a value.
   */
  drift(table: string, field: string, reason: 'unknown field' | 'unexpected type'): void
  /** Reports an item that cannot be stored. `within`: the key of the row that the item belongs to, if it is known. */
  reject(table: string, item: unknown, reason: string, within?: string): void
}
