import { createHash } from 'node:crypto'

/** The style of a report. The file of the report has it, so that no other file is needed. */

/** The colours of parts and lines, on the background of a section: at least 3:1 in both modes. */
export const LIGHT = {
  page: '#f6f7f9',
  card: '#ffffff',
  text: '#1b1f24',
  pale: '#59636e',
  line: '#d5dae0',
  warn: '#8a5a00',
  c0: '#0b5cad',
  c1: '#b45309',
  c2: '#1a7f37',
  c3: '#8b3fb5',
  c4: '#b42318',
  c5: '#59636e',
}

export const DARK: typeof LIGHT = {
  page: '#0e1217',
  card: '#171c23',
  text: '#e6e9ee',
  pale: '#9aa5b1',
  line: '#303843',
  warn: '#e3a92b',
  c0: '#6cb2ff',
  c1: '#f0a64a',
  c2: '#4cc26b',
  c3: '#d39bff',
  c4: '#ff8078',
  c5: '#9aa5b1',
}

const variables = (colours: typeof LIGHT) =>
  Object.entries(colours)
    .map(([name, colour]) => `--${name}: ${colour};`)
    .join(' ')

/** Lines differ in their dashes too, for people who do not see the colours. */
const DASHES = ['none', '7 3', '2 3', '10 3 2 3', '12 4', '1 4']

export const STYLE = `
:root { color-scheme: light dark; ${variables(LIGHT)} }
@media screen and (prefers-color-scheme: dark) { :root { ${variables(DARK)} } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 1rem / 1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
main { max-width: 60rem; margin: 0 auto; padding: 1rem; }
h1 { margin: 0.5rem 0; font-size: 1.6rem; line-height: 1.3; }
h2 { margin: 0 0 0.5rem; font-size: 1.25rem; }
a { color: var(--c0); }
header p, section p { margin: 0.4rem 0; }
nav ul { display: flex; flex-wrap: wrap; gap: 0.2rem 1.2rem; margin: 0.8rem 0; padding: 0; list-style: none; }
section { margin: 1rem 0; padding: 1rem; border: 1px solid var(--line); border-radius: 8px; background: var(--card); }
.figure { font-size: 1.1rem; font-weight: 600; }
.notes { margin: 0.4rem 0; padding-left: 1.2rem; color: var(--warn); }
.warn { color: var(--warn); font-weight: 600; }
.pale, figcaption, caption, footer { color: var(--pale); }
figure { margin: 1rem 0; }
figcaption { margin-bottom: 0.4rem; font-weight: 600; }
.chart { display: block; overflow: visible; font-size: 13px; }
.chart text { fill: var(--text); unicode-bidi: isolate; }
.chart .last { text-anchor: end; }
.chart .middle { text-anchor: middle; }
.chart .tick { fill: var(--pale); font-size: 12px; }
.chart polyline, .legend line { fill: none; stroke-width: 2.5; vector-effect: non-scaling-stroke; stroke-linejoin: round; }
.chart .grid { stroke: var(--line); }
.chart .track { fill: var(--line); opacity: 0.5; }
${DASHES.map((dashes, place) => `.f${place} { fill: var(--c${place}); } .l${place} { stroke: var(--c${place}); stroke-dasharray: ${dashes}; }`).join('\n')}
.legend { display: flex; flex-wrap: wrap; gap: 0.2rem 1.2rem; margin: 0.4rem 0; padding: 0; list-style: none; font-size: 0.9rem; }
.scroll { overflow: auto; max-height: 28rem; margin: 0.6rem 0; }
table { width: 100%; border-collapse: collapse; font-size: 0.9rem; overflow-wrap: normal; }
caption { text-align: left; padding-bottom: 0.3rem; }
th, td { padding: 0.25rem 0.6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; font-variant-numeric: tabular-nums; }
th:first-child, td:first-child { padding-left: 0; }
thead th { position: sticky; top: 0; background: var(--card); color: var(--pale); }
header thead th { background: var(--page); }
.number { text-align: right; }
td.number, td.day { white-space: nowrap; }
summary { cursor: pointer; padding: 0.2rem 0; }
pre { overflow-x: auto; margin: 0.4rem 0; padding: 0.6rem; border: 1px solid var(--line); border-radius: 4px; font-size: 0.85rem; overflow-wrap: normal; }
:focus-visible { outline: 2px solid var(--c0); outline-offset: 2px; }
@media (max-width: 40rem) { .chart .wide { display: none; } main { padding: 0.5rem; } section { padding: 0.7rem; } }
@media print {
  :root { color-scheme: light; font-size: 10pt; }
  body { background: none; }
  main { max-width: none; padding: 0; }
  nav { display: none; }
  section { border: none; padding: 0.5rem 0; }
  h2, figcaption, caption, thead { break-after: avoid; }
  figure, tr { break-inside: avoid; }
  .scroll { overflow: visible; max-height: none; }
  thead th { position: static; }
}
`

/** The Content-Security-Policy of a served report: this style, and nothing else. */
export const REPORT_POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`
