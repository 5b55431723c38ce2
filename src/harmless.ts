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

/** One line of JSON with every unsafe character escaped; it parses to the same value. */
export function jsonLine(value: unknown): string {
  return `${escaped(JSON.stringify(value))}\n`
}

/** The same, indented for people. */
export function jsonPage(value: unknown): string {
  return `${escaped(JSON.stringify(value, null, 2))}\n`
}

/** JSON itself escapes the control characters below U+0020 in strings: its line feeds are all between values. */
function escaped(json: string): string {
  return json.replace(UNSAFE, found =>
    found === LINE_FEED ? found : `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
