import { html as hono } from 'hono/html'
import type { HtmlEscapedString } from 'hono/utils/html'

/** Text that is safe to send as HTML. */
export type Html = HtmlEscapedString

/** Strings are escaped. Null, undefined and false are left out. */
export type HtmlValue = string | number | Html | null | undefined | false | readonly HtmlValue[]

/** A template of HTML or SVG that escapes every value, also in quoted attributes. */
export function html(strings: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  // The library's result is a promise only when a value is one, which `HtmlValue` excludes.
  return hono(strings, ...values) as Html
}
