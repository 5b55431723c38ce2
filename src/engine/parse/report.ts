/** Where a parser reports what does not fit the declarations. */
export interface ParseReport {
  /** A field without a column, or a value that does not fit. Values, and names that may be values, are not passed on. */
  drift(table: string, field: string, reason: 'unknown field' | 'unexpected type'): void
  /** `within`: the key of the row that it hangs on, where that is known. */
  reject(table: string, item: unknown, reason: string, within?: string): void
}
