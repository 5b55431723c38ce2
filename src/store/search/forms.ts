/**
 * Which texts match a term: case, full or half width, composed or decomposed characters and the kind of white space do
 * not matter. The indices hold the texts as stored, since SQL triggers fill the indices and SQL cannot convert widths.
 * Therefore a search expands the term to all its forms. Pure.
 */

/** For each character of one spelling of the term, the characters that count as equal to it. */
export type Form = readonly (readonly string[])[]

/** The forms of a term. They can differ in length: a voiced kana in half width is two characters. */
export function formsOf(term: string): Form[] {
  const plain = term.normalize('NFKC')
  // The usual capital of ß is SS: STRASSE is Straße.
  const sharp = [plain.replaceAll(/[ßẞ]/g, 'ss'), plain.replaceAll(/ss/gi, 'ß')]
  const spellings = new Set([plain, halved(plain), term, plain.normalize('NFD'), ...sharp])
  const forms = [...spellings].map(spelling => Array.from(spelling, alike))
  const known = new Set<string>()
  return forms.filter(form => {
    const key = JSON.stringify(form)
    return known.size < known.add(key).size
  })
}

/** The Unicode block of half-width and full-width forms, and the ideographic space. */
const WIDE_OR_NARROW = [
  '\u3000',
  ...Array.from({ length: 0xffef - 0xff00 }, (_, at) => String.fromCodePoint(0xff01 + at)),
]

/** Characters of the block by their NFKC normalization, where that is a single character. */
const BY_PLAIN: ReadonlyMap<string, readonly string[]> = WIDE_OR_NARROW.reduce((all, each) => {
  const plain = each.normalize('NFKC')
  const isOne = plain !== each && Array.from(plain).length === 1
  return isOne ? all.set(plain, [...(all.get(plain) ?? []), each]) : all
}, new Map<string, readonly string[]>())

const MARKS = ['\uff9e', '\uff9f']

/** Voiced kana → their two half-width characters. */
const HALVED: ReadonlyMap<string, string> = new Map(
  WIDE_OR_NARROW.flatMap(each =>
    MARKS.map(mark => [(each + mark).normalize('NFKC'), each + mark] as const).filter(
      ([plain]) => Array.from(plain).length === 1,
    ),
  ),
)

const halved = (text: string): string => Array.from(text, each => HALVED.get(each) ?? each).join('')

/** White space that a text may have where the term has a space, such as a line break. */
const WHITE_SPACE = Array.from(
  ' \t\n\v\f\r\u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000',
)

/**
 * Letters that share a capital or a small letter: Turkish has two letters i, and µ, Å and Ω are also signs of units.
 */
const ONE_LETTER = ['iIıİ', 'ßẞ', 'σΣς', 'μΜ\u00b5', 'åÅ\u212b', 'ωΩ\u2126']

/** @returns all characters that count as equal to this character, itself first */
function alike(character: string): readonly string[] {
  if (character === ' ') return WHITE_SPACE
  const plain = character.normalize('NFKC')
  const base = Array.from(plain).length === 1 ? plain : character
  const others = ONE_LETTER.find(letters => letters.includes(base)) ?? ''
  const cases = [character, base, base.toLowerCase(), base.toUpperCase(), ...others]
  const all = cases.filter(each => Array.from(each).length === 1)
  return [...new Set(all.flatMap(each => [each, ...(BY_PLAIN.get(each) ?? [])]))]
}

/** A GLOB pattern that matches texts containing this form. */
export function globOf(form: Form): string {
  return `*${form.map(globClass).join('')}*`
}

/** Inside brackets every character is literal when `]` comes first, `-` comes last, and `^` is not first. */
function globClass(characters: readonly string[]): string {
  const [only = ''] = characters
  if (characters.length === 1 && !'*?['.includes(only)) return only
  const rank = (each: string) => (each === ']' ? 0 : each === '-' ? 3 : each === '^' ? 2 : 1)
  return `[${[...characters].sort((a, b) => rank(a) - rank(b)).join('')}]`
}

/** A pattern for a `RegExp` with the flag `u` that matches this form. */
export function regexOf(form: Form): string {
  return form
    .map(characters => `[${characters.map(escaped).join('')}]${characters === WHITE_SPACE ? '+' : ''}`)
    .join('')
}

const escaped = (character: string): string => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`

/**
 * For each three consecutive characters of a form: all texts that the index may have for them. Trigrams that begin or
 * end with white space are left out, since a line break may have several characters (`withOneSpacePerBreak`).
 */
export function trigramsOf(form: Form): string[][] {
  return form.slice(2).flatMap((last, at) => {
    const [first = [], middle = []] = form.slice(at)
    if (first === WHITE_SPACE || last === WHITE_SPACE) return []
    const breaks = middle === WHITE_SPACE ? runsOf([first, BREAKS]) : []
    return [[...runsOf([first, middle, last]), ...breaks]]
  })
}

/** The first two characters of a line break of several characters. */
const BREAKS = ['\r\n', ' \r', ' \n']

/**
 * @returns all texts that match this short form. The index folds the case of queries, so one case is enough for most
 * characters.
 */
export function runsOf(form: Form): string[] {
  const runs = form.reduce<string[]>(
    (prefixes, characters) => {
      const different = new Set(characters.map(each => (FOLDED_ALIKE.test(each) ? each.toLowerCase() : each)))
      return prefixes.flatMap(run => [...different].map(each => run + each))
    },
    [''],
  )
  return [...new Set(runs)]
}

/**
 * Characters that the index folds to lower case as JavaScript does. For the others `runsOf` keeps every case: the index
 * does not fold all of them, and İ has two characters in lower case.
 */
const FOLDED_ALIKE = /[^\u0130\u037f\u0528-\u1dff\u2000-\ufeff\u{10000}-\u{10ffff}]/u
