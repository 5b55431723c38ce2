/** The width of text on a terminal. Pure. */

/** Characters that terminals draw two columns wide: East Asian scripts and emoji. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|\ufe0f/u

const NARROW = /^[\u0020-\u024f]*$/

/** The width in columns of text without line breaks, tabs and colours. */
export function textWidth(text: string): number {
  if (NARROW.test(text)) return text.length
  // Created only when needed: its tables take 3 MiB of memory, and most commands print plain text only.
  const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })
  let width = 0
  // A grapheme, such as a letter with its accents, may consist of several characters.
  for (const { segment } of graphemes.segment(text)) width += WIDE.test(segment) ? 2 : 1
  return width
}
