/**
 * Which texts count as a term: letters small or capital, and signs of full and half width, alike. The indices hold texts
 * as they are, so that any program that writes keeps them right; it is the term that is looked for in all its forms. Pure.
 */

/** For each character of a form of the term, those that may stand in its place. */
export type Form = readonly (readonly string[])[]

/** The forms of a term, which differ in their length: a voiced kana of half width is two characters. */
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

/** The block of half-width and full-width forms, and the wide space. */
const WIDE_OR_NARROW = [
  '\u3000',
  ...Array.from({ length: 0xffef - 0xff00 }, (_, at) => String.fromCodePoint(0xff01 + at)),
]

/** Characters of the block by the one character that NFKC makes of them. */
const BY_PLAIN: ReadonlyMap<string, readonly string[]> = WIDE_OR_NARROW.reduce((all, each) => {
  const plain = each.normalize('NFKC')
  const isOne = plain !== each && Array.from(plain).length === 1
  return isOne ? all.set(plain, [...(all.get(plain) ?? []), each]) : all
}, new Map<string, readonly string[]>())

const MARKS = ['\uff9e', '\uff9f']

/** Voiced kana as the two characters of half width. */
const HALVED: ReadonlyMap<string, string> = new Map(
  WIDE_OR_NARROW.flatMap(each =>
    MARKS.map(mark => [(each + mark).normalize('NFKC'), each + mark] as const).filter(
      ([plain]) => Array.from(plain).length === 1,
    ),
  ),
)

const halved = (text: string): string => Array.from(text, each => HALVED.get(each) ?? each).join('')

/** Every character that counts as this one, itself first. */
function alike(character: string): string[] {
  const plain = character.normalize('NFKC')
  const base = Array.from(plain).length === 1 ? plain : character
  const cases = [character, base, base.toLowerCase(), base.toUpperCase()]
  const all = cases.filter(each => Array.from(each).length === 1)
  return [...new Set(all.flatMap(each => [each, ...(BY_PLAIN.get(each) ?? [])]))]
}

/** A pattern for GLOB that finds this form anywhere. */
export function globOf(form: Form): string {
  return `*${form.map(globClass).join('')}*`
}

/** In brackets everything stands for itself: `]` comes first, `^` does not, and `-` comes last. */
function globClass(characters: readonly string[]): string {
  const [only = ''] = characters
  if (characters.length === 1 && !'*?['.includes(only)) return only
  const rank = (each: string) => (each === ']' ? 0 : each === '-' ? 3 : each === '^' ? 2 : 1)
  return `[${[...characters].sort((a, b) => rank(a) - rank(b)).join('')}]`
}

/** A pattern for `RegExp` with the flag `u` that finds this form. */
export function regexOf(form: Form): string {
  return form.map(characters => `[${characters.map(escaped).join('')}]`).join('')
}

const escaped = (character: string): string => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`

/** Three characters in a row of a form, in every width: the index takes small letters and capitals for the same. */
export function trigramsOf(form: Form): string[][] {
  return form.slice(2).map((_, at) => runsOf(form.slice(at, at + 3)))
}

/** Every text of a few characters that counts as this one, in small letters. */
export function runsOf(form: Form): string[] {
  const runs = form.reduce<string[]>(
    (begun, characters) => {
      const small = new Set(characters.map(each => each.toLowerCase()))
      return begun.flatMap(run => [...small].map(each => run + each))
    },
    [''],
  )
  return [...new Set(runs)]
}
