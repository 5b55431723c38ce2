/** Keeps the page up to date while it is visible: reads it again and replaces the sections that have changed. */

const EVERY_MS = 5000

let pending = false

async function update() {
  if (document.hidden || pending) return
  pending = true
  try {
    const response = await fetch('./', { headers: { accept: 'text/html' } })
    if (!response.headers.get('content-type')?.startsWith('text/html')) throw new Error('not a page')
    show(new DOMParser().parseFromString(await response.text(), 'text/html'))
  } catch {
    showSilence()
  } finally {
    pending = false
  }
}

/** A page that is no longer updated must not look as if all were well. */
function showSilence() {
  const verdict = document.getElementById('verdict')
  if (verdict === null || document.getElementById('silence')) return
  const time = new Date().toISOString().slice(11, 19)
  const notice = document.createElement('header')
  notice.id = 'silence'
  notice.className = 'verdict act'
  const text = document.createElement('div')
  text.setAttribute('role', 'alert')
  text.append(
    element('h1', `parley has not answered since ${time} UTC`),
    element('p', 'If this lasts, check that the process runs. A backfill closes its page when it ends.'),
    element('p', 'Everything below is from before that time.'),
  )
  notice.append(text)
  verdict.before(notice)
  verdict.hidden = true
  document.querySelector('main')?.classList.add('old')
  document.title = 'No answer – parley'
}

/**
 * @param {string} name
 * @param {string} text
 */
function element(name, text) {
  const made = document.createElement(name)
  made.textContent = text
  return made
}

/** @param {Document} fresh */
function show(fresh) {
  document.getElementById('silence')?.remove()
  document.querySelector('main')?.classList.remove('old')
  document.getElementById('verdict')?.removeAttribute('hidden')
  document.title = fresh.title
  const icon = document.querySelector('link[rel=icon]')
  icon?.setAttribute('href', fresh.querySelector('link[rel=icon]')?.getAttribute('href') ?? '')
  const parts = [...document.querySelectorAll('main > [id]')]
  const freshParts = [...fresh.querySelectorAll('main > [id]')]
  if (idsOf(parts) !== idsOf(freshParts)) {
    document.querySelector('main')?.replaceChildren(...freshParts)
    prepareCells()
    return
  }
  freshParts.forEach((next, place) => {
    const section = parts[place]
    if (section && !next.isEqualNode(asServed(section))) replace(section, next)
  })
}

/** @param {Element[]} parts */
const idsOf = parts => parts.map(({ id }) => id).join(' ')

/**
 * The section without what people or this module changed in it.
 * @param {Element} section
 */
function asServed(section) {
  const copy = /** @type {Element} */ (section.cloneNode(true))
  copy.querySelector('#cell')?.remove()
  for (const open of copy.querySelectorAll('details[open]')) open.removeAttribute('open')
  for (const cell of copy.querySelectorAll('.heat use[tabindex]')) cell.removeAttribute('tabindex')
  return copy
}

/**
 * Keeps open tables open, scrolled parts where they are, and the focus.
 * @param {Element} section
 * @param {Element} next
 */
function replace(section, next) {
  const opened = [...section.querySelectorAll('details')].map(({ open }) => open)
  const scrolled = [...section.querySelectorAll('.scroll')].map(({ scrollLeft, scrollTop }) => [
    scrollLeft,
    scrollTop,
  ])
  const focusable = '[tabindex], summary'
  const focus = [...section.querySelectorAll(focusable)].indexOf(
    /** @type {Element} */ (document.activeElement),
  )
  section.replaceWith(next)
  if (section.id === 'coverage') prepareCells()
  next.querySelectorAll('details').forEach((details, place) => {
    details.open = opened[place] ?? false
  })
  next.querySelectorAll('.scroll').forEach((part, place) => {
    const [left = 0, top = 0] = scrolled[place] ?? []
    part.scrollTo(left, top)
  })
  const again = next.querySelectorAll(focusable)[focus]
  if (again instanceof HTMLElement || again instanceof SVGElement) again.focus({ preventScroll: true })
}

const cells = () => [...document.querySelectorAll('.heat use')]

/** One cell of the heat map takes part in the order of the Tab key; arrow keys move on from there. */
function prepareCells() {
  cells().forEach((cell, place) => {
    cell.setAttribute('tabindex', place === 0 ? '0' : '-1')
  })
}

/** @param {EventTarget | null} target */
const cellAt = target => (target instanceof Element ? target.closest('.heat use') : null)

/**
 * `messages, 2026-03, texts missing: 8,000 −12`, from the legend and the table of the heat map.
 * @param {Element} cell
 */
function nameOf(cell) {
  const column = [...(cell.parentElement?.children ?? [])].indexOf(cell)
  const row = document.querySelectorAll('#coverage tbody tr')[column]
  const line = [...document.querySelectorAll('.heat g')].indexOf(
    /** @type {SVGGElement} */ (cell.parentElement),
  )
  const resource = document.querySelectorAll('.heat .names text')[line]?.textContent ?? ''
  const state = document.querySelector(cell.getAttribute('href') ?? '')?.closest('span')?.textContent ?? ''
  const rows = row?.querySelectorAll('td')[line]?.textContent ?? ''
  return `${resource}, ${row?.querySelector('th')?.textContent ?? ''}, ${state.trim()}${rows === '' ? '' : `: ${rows}`}`
}

/** @param {Element} cell */
function name(cell) {
  const line = document.getElementById('cell') ?? document.createElement('p')
  line.id = 'cell'
  line.setAttribute('role', 'status')
  line.textContent = nameOf(cell)
  if (!line.isConnected) document.querySelector('.heat')?.after(line)
}

document.addEventListener('focusin', event => {
  const cell = cellAt(event.target)
  if (!cell) return
  document.querySelector('.heat use[tabindex="0"]')?.setAttribute('tabindex', '-1')
  cell.setAttribute('tabindex', '0')
  name(cell)
})

document.addEventListener('click', event => {
  const cell = cellAt(event.target)
  if (cell instanceof SVGElement) cell.focus()
})

document.addEventListener('keydown', event => {
  const cell = cellAt(event.target)
  if (!cell) return
  const all = cells()
  const perLine = cell.parentElement?.childElementCount ?? 0
  const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: perLine, ArrowUp: -perLine }
  const step = steps[/** @type {keyof typeof steps} */ (event.key)]
  const next = step === undefined ? undefined : all[all.indexOf(cell) + step]
  if (!(next instanceof SVGElement)) return
  event.preventDefault()
  next.focus()
})

prepareCells()
// The newest months are at the end.
document.querySelector('.heat .scroll')?.scrollTo(Number.MAX_SAFE_INTEGER, 0)
setInterval(update, EVERY_MS)
document.addEventListener('visibilitychange', update)
