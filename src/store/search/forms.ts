/**
 * Which texts match a term: case and full or half width do not matter. The indices hold the texts as stored: SQL
 * triggers keep them up to date in every program that writes, and SQL cannot convert widths. Therefore a search expands
 * the term to all its forms. Pure.
 */

/** For each character of one spelling of the term, the characters that count as equal to it. */
export type Form = readonly (readonly string[])[]

/** The forms of a term. They can differ in length: a voiced kana in half width is two characters. */
export function formsOf(term: string): Form[] {
  const plain = term.normalize('NFKC')
  const spellings = new Set([plain, halved(plain), term])
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

/** Voiced kana to their two half-width characters. */
const HALVED: ReadonlyMap<string, string> = new Map(
  WIDE_OR_NARROW.flatMap(each =>
    MARKS.map(mark => [(each + mark).normalize('NFKC'), each + mark] as const).filter(
      ([plain]) => Array.from(plain).length === 1,
    ),
  ),
)

const halved = (text: string): string => Array.from(text, each => HALVED.get(each) ?? each).join('')

/** All characters that count as equal to this one; this one comes first. */
function alike(character: string): string[] {
  const plain = character.normalize('NFKC')
  const base = Array.from(plain).length === 1 ? plain : character
  const cases = [character, base, base.toLowerCase(), base.toUpperCase()]
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
  return form.map(characters => `[${characters.map(escaped).join('')}]`).join('')
}

const escaped = (character: string): string => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`

/** For each three consecutive characters of a form: all their variants in lower case, as the index folds case. */
export function trigramsOf(form: Form): string[][] {
  return form.slice(2).map((_, at) => runsOf(form.slice(at, at + 3)))
}

/** All texts that match this short form, in lower case. */
export function runsOf(form: Form): string[] {
  const runs = form.reduce<string[]>(
    (prefixes, characters) => {
      const small = new Set(characters.map(each => each.toLowerCase()))
      return prefixes.flatMap(run => [...small].map(each => run + each))
    },
    [''],
  )
  return [...new Set(runs)]
}
