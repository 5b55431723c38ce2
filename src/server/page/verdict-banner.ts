import { type LoadingProgress, loadedShare } from '../../health/loading.ts'
import type { HealthProblem } from '../../health/problems.ts'
import type { HealthVerdict } from '../../health/verdict.ts'
import { PROBLEM_LABELS } from '../../health/wording.ts'
import { clockText, countText } from '../../terminal/wording.ts'
import { type Html, html } from './html.ts'
import { foreign } from './wording.ts'

/** A circle with a tick, an arrow, two bars or an exclamation mark: readable without its colour, next to the text. */
const SHAPES: Readonly<Record<HealthVerdict['kind'], { colour: string; path: string }>> = {
  ok: { colour: '#1a7f37', path: 'M7 12.5l3.5 3.5 6.5-8' },
  loading: { colour: '#0b5cad', path: 'M12 6v11M7.5 12.5L12 17l4.5-4.5' },
  wait: { colour: '#8a5a00', path: 'M9.5 7v10M14.5 7v10' },
  warn: { colour: '#8a5a00', path: 'M12 6v7.5M12 17v.5' },
  act: { colour: '#b42318', path: 'M12 6v7.5M12 17v.5' },
}

export function verdictIcon(kind: HealthVerdict['kind']): Html {
  const { colour, path } = SHAPES[kind]
  return html`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" width="40" height="40" aria-hidden="true"><circle cx="12" cy="12" r="11" fill="${colour}"/><path d="${path}" fill="none" stroke="#fff" stroke-width="2.5" stroke-linecap="round" stroke-linejoin="round"/></svg>`
}

export function verdictBanner({ kind, text, detail, todo, loading }: HealthVerdict): Html {
  return html`<header id="verdict" class="verdict ${kind}">
${verdictIcon(kind)}
<div role="status"><h1>${foreign(text)}</h1>${todo !== null && html`<p class="todo">${foreign(todo)}</p>`}${detail !== null && html`<p>${foreign(detail)}.</p>`}${loading && loadingBar(loading)}</div>
</header>`
}

function loadingBar(loading: LoadingProgress): Html {
  const value = Math.floor(loadedShare(loading) * 100)
  return html`<progress max="100" value="${value}" aria-label="Loading history">${value} %</progress>`
}

/** All problems but the first, which the banner shows. */
export function problemsSection(problems: readonly HealthProblem[], now: number): Html {
  const others = problems.slice(1)
  if (others.length === 0) return html`<section id="problems" hidden></section>`
  return html`<section id="problems" aria-labelledby="problems-title">
<h2 id="problems-title">${countText(others.length, 'more problem')}</h2>
<ul>${others.map(problem => problemItem(problem, now))}</ul>
</section>`
}

function problemItem({ kind, what, detail, todo, since }: HealthProblem, now: number): Html {
  const from = since === null ? '' : ` since ${clockText(since, now)}`
  return html`<li class="${kind}"><strong>${PROBLEM_LABELS[kind]}${from}:</strong> ${foreign(what)}${detail !== null && html`: ${foreign(detail)}`}. ${foreign(todo)}</li>
`
}
