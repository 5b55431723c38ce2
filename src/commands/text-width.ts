/** How much room text takes on a terminal. Pure. */

/** What terminals draw two columns wide: East Asian scripts and emoji. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|\ufe0f/u

const NARROW = /^[\u0020-\u024f]*$/
const SIGNS = new Intl.Segmenter('en', { granularity: 'grapheme' })

/** In columns, for text without line breaks, tabs and colours. */
export function textWidth(text: string): number {
  if (NARROW.test(text)) return text.length
  let width = 0
  // What people see as one sign, such as a letter with its accents, may be several characters.
  for (const { segment } of SIGNS.segment(text)) width += WIDE.test(segment) ? 2 : 1
  return width
}
