/**
 * Makes text from outside (CRM names, server messages) safe to print. Control characters in such text could break
 * lines, move the terminal's cursor, fill the clipboard or reverse the text that follows. All text that commands print
 * goes through one of these functions, scripts and SQL too, so nothing has to be refused when standard output is a
 * terminal. Pure.
 */

const LINE_FEED = '\n'
const UNSAFE = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu
const UNSAFE_IN_A_ROW = new RegExp(`${UNSAFE.source}+`, 'gu')

/** Each unsafe character, line feeds included, becomes U+FFFD. */
export function safeText(text: string): string {
  return text.replace(UNSAFE, '\u{fffd}')
}

/** As `safeText`, but line feeds stay. */
export function safeMultilineText(text: string): string {
  return text.replace(UNSAFE, found => (found === LINE_FEED ? found : '\u{fffd}'))
}

/**
 * Each run of unsafe characters, line breaks and spaces becomes one space. For texts whose line breaks have no meaning.
 */
export function singleLine(text: string): string {
  return text.replace(UNSAFE_IN_A_ROW, ' ').replace(/ {2,}/g, ' ')
}

/** One line of JSON with every unsafe character escaped; the line parses to the same value. */
export function jsonLine(value: unknown): string {
  return `${escapedJson(JSON.stringify(value))}\n`
}

/** As `jsonLine`, but indented. */
export function indentedJson(value: unknown): string {
  return `${escapedJson(JSON.stringify(value, null, 2))}\n`
}

/**
 * Escapes all unsafe characters but line feeds: JSON escapes a line feed inside a string, so the rest separate values.
 */
function escapedJson(json: string): string {
  return json.replace(UNSAFE, found =>
    found === LINE_FEED ? found : `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** A word of a command that people copy into a shell, such as a path; in quotes where the shell would change it. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}
