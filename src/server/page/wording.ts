import { wholeNumber } from '../../base/whole-number.ts'
import { relativeTime } from '../../terminal/wording.ts'
import { type Html, html } from './html.ts'

/** How the page writes numbers, instants and names. */

/** An instant as people read it, in UTC; a dash for null. */
export function instantText(instant: string | null): Html {
  if (instant === null) return html`<span class="none">–</span>`
  return html`<time datetime="${instant}">${shortInstant(instant)}</time>`
}

/** The distance to now, and the instant itself in a tooltip; a dash for null. */
export function ageCell(instant: string | null, now: number): Html {
  if (instant === null) return html`<span class="none">–</span>`
  return html`<time datetime="${instant}" title="${shortInstant(instant)} UTC">${relativeTime(instant, now)}</time>`
}

/** `2026-03-04 05:06:07` */
export function shortInstant(instant: string): string {
  return instant.replace('T', ' ').replace(/(\.\d+)?Z$/, '')
}

/** A zero is pale, so that figures that matter stand out in a table. */
export function countCell(value: number): Html {
  return value === 0
    ? html`<td class="number none">0</td>`
    : html`<td class="number">${wholeNumber(value)}</td>`
}

/** A text that the API or the system chose: its direction does not affect what surrounds it. */
export function foreign(text: string): Html {
  return html`<bdi>${text}</bdi>`
}
