const SAFE = Symbol('safe to send as HTML')

/** Text that is safe to send as HTML. Only `html` makes it. */
export interface Html {
  readonly [SAFE]: string
  toString(): string
}

/** Strings are escaped. Null, undefined and false are left out. */
export type HtmlValue = string | number | Html | null | undefined | false | readonly HtmlValue[]

/** A template of HTML or SVG that escapes every value, also in quoted attributes. */
export function html(strings: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  const text = strings.reduce((all, part, index) => `${all}${textOf(values[index - 1])}${part}`)
  return { [SAFE]: text, toString: () => text }
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function textOf(value: HtmlValue): string {
  if (value === null || value === undefined || value === false) return ''
  if (typeof value === 'number') return String(value)
  if (typeof value === 'string') return value.replace(/[&<>"']/g, character => ENTITIES[character] ?? '')
  return SAFE in value ? value[SAFE] : value.map(textOf).join('')
}
