/** The part of a writable stream that commands use. */
export interface Output {
  write(text: string): unknown
  isTTY?: boolean
  columns?: number
  rows?: number
}
