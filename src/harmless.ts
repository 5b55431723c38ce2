/**
 * Text from outside (names of the CRM, messages of servers) may end lines, move a terminal's cursor, fill its clipboard
 * or show what follows in another order. Every text that reaches a terminal goes through one of these. Pure.
 */

const LINE_FEED = '\n'
const UNSAFE = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu
const UNSAFE_IN_A_ROW = new RegExp(`${UNSAFE.source}+`, 'gu')

/** Each unsafe character becomes a replacement character, line feeds included. */
export function harmless(text: string): string {
  return text.replace(UNSAFE, '\u{fffd}')
}

/** For texts of several lines. */
export function harmlessLines(text: string): string {
  return text.replace(UNSAFE, found => (found === LINE_FEED ? found : '\u{fffd}'))
}

/** For texts whose line breaks mean nothing: unsafe characters become one space. */
export function onOneLine(text: string): string {
  return text.replace(UNSAFE_IN_A_ROW, ' ').replace(/ {2,}/g, ' ')
}

/** One line of JSON that says the same. JSON escapes some of the unsafe characters itself. */
export function jsonLine(value: unknown): string {
  const escaped = (found: string) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`
  return `${JSON.stringify(value).replace(UNSAFE, escaped)}\n`
}
