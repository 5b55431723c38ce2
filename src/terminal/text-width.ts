/** The width of text on a terminal. Pure. */

/** Characters that terminals draw two columns wide: East Asian scripts and emoji. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|\ufe0f/u

const NARROW = /^[\u0020-\u024f]*$/

/** The width in columns of text without line breaks, tabs and colours. */
export function textWidth(text: string): number {
  if (NARROW.test(text)) return text.length
  let width = 0
  for (const grapheme of graphemesOf(text)) width += graphemeWidth(grapheme)
  return width
}

/** The text, or its beginning and an ellipsis, in at most `width` columns. */
export function cutToWidth(text: string, width: number): string {
  if (textWidth(text) <= width) return text
  if (width < 1) return ''
  const [start = ''] = splitAtWidth(text, width - 1)
  return textWidth(start) < width ? `${start}…` : '…'
}

/** The text in pieces of at most `width` columns each. A wider character is a separate piece. */
export function splitAtWidth(text: string, width: number): string[] {
  if (textWidth(text) <= width) return [text]
  const pieces: string[] = []
  let [piece, taken] = ['', 0]
  for (const grapheme of graphemesOf(text)) {
    const more = graphemeWidth(grapheme)
    if (taken + more > width && piece !== '') {
      pieces.push(piece)
      ;[piece, taken] = ['', 0]
    }
    piece += grapheme
    taken += more
  }
  return [...pieces, piece]
}

const graphemeWidth = (grapheme: string): number => (WIDE.test(grapheme) ? 2 : 1)

/** A grapheme, such as a letter with its accents, may consist of several characters. */
function* graphemesOf(text: string): Generator<string> {
  // Created only when needed: its tables take 3 MiB of memory, and most commands print plain text only.
  const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })
  for (const { segment } of graphemes.segment(text)) yield segment
}
