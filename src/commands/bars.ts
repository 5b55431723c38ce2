import type { GovernorState } from '../api/governor.ts'
import { isoInstant } from '../clock.ts'
import type { Unreachable } from '../engine/reachability.ts'
import { RESOURCE_NAMES, type ResourceName } from '../resource.ts'
import { counted, duration, perSecond, wholeNumber } from './wording.ts'

/** What is drawn while a backfill runs: one line for each resource in work, and two or three about the whole. Pure. */

export interface ResourceBar {
  resource: ResourceName
  done: number
  total: number | undefined
  /** The total is about right only. */
  isGuess: boolean
  /** Rows read in this run. */
  rows: number
}

export interface Overall {
  finished: number
  resources: number
  requests: number
  throttled: number
  /** Answers per second lately. */
  rate: number | undefined
  governor: GovernorState
  /** While the API does not answer, or refuses everything. */
  trouble: Unreachable | undefined
  /** While suspected deletions wait to be confirmed: until when. Both in ms since the epoch. */
  confirmingUntil: number | undefined
  now: number
  elapsedMs: number
  leftMs: number | undefined
  stopping: boolean
}

export interface Picture {
  columns: number
  rows: number
  colour: boolean
}

/** Lines that fit on the terminal; resources that find no room are only counted. */
export function drawBars(bars: readonly ResourceBar[], overall: Overall, picture: Picture): string[] {
  const footer = [...totals(overall), ...pause(overall)].map(line => line.slice(0, picture.columns))
  const room = Math.max(1, picture.rows - footer.length - 1)
  const shown = bars.slice(0, room)
  const lines = shown.map(bar => drawBar(bar, widths(shown), picture))
  const hidden = bars.length - shown.length
  return [...lines, ...(hidden > 0 ? [`and ${hidden} more`] : []), ...footer]
}

interface Widths {
  name: number
  share: number
  rows: number
}

function widths(bars: readonly ResourceBar[]): Widths {
  const widest = (texts: string[]) => Math.max(0, ...texts.map(text => text.length))
  return {
    // Always the same, so that the bars do not move sideways while resources come and go.
    name: widest([...RESOURCE_NAMES]),
    share: widest(bars.map(share)),
    rows: widest(bars.map(rowsRead)),
  }
}

const WIDEST_BAR = 40
const NARROWEST_BAR = 8

function drawBar(bar: ResourceBar, { name, share: shareWidth, rows }: Widths, picture: Picture): string {
  const texts = [bar.resource.padEnd(name), share(bar).padStart(shareWidth), rowsRead(bar).padStart(rows)]
  const taken = texts.join('  ').length + 4
  const width = Math.min(WIDEST_BAR, picture.columns - taken)
  const [label = '', ...numbers] = texts
  if (width < NARROWEST_BAR) return texts.join('  ').slice(0, picture.columns)
  return [label, gauge(bar, width, picture.colour), ...numbers].join('  ')
}

/** Without a total there is no bar to fill. Plain characters, which are one column wide in every terminal. */
function gauge({ done, total }: ResourceBar, width: number, colour: boolean): string {
  if (total === undefined || total === 0) return ' '.repeat(width + 2)
  const filled = Math.min(width, Math.floor((done / total) * width))
  const bar = `${'='.repeat(filled)}${filled < width ? '>' : ''}`.slice(0, width)
  return `[${colour ? `\u001b[32m${bar}\u001b[0m` : bar}${' '.repeat(width - bar.length)}]`
}

function share({ done, total, isGuess }: ResourceBar): string {
  if (total === undefined || total === 0) return ''
  return `${wholeNumber(Math.min(done, total))} of ${isGuess ? '~' : ''}${wholeNumber(total)}`
}

const rowsRead = ({ rows }: ResourceBar) => counted(rows, 'row')

function totals(overall: Overall): string[] {
  const { finished, resources, requests, throttled, elapsedMs, leftMs, rate, governor } = overall
  const speed = rate === undefined ? [] : [`${perSecond(rate)} requests/s${allowance(governor)}`]
  const left = leftMs === undefined ? [] : [`about ${duration(Math.max(leftMs, 1000))} left`]
  return [
    [
      ...speed,
      counted(requests, 'request'),
      ...(throttled > 0 ? [`${wholeNumber(throttled)} refused (429)`] : []),
    ].join(', '),
    [
      `${finished} of ${resources} resources read`,
      ...(elapsedMs < 1000 ? [] : [`${duration(elapsedMs)} elapsed`]),
      ...left,
    ].join(', '),
  ]
}

/** From here on nothing holds the requests back but the answers' own time. */
const UNPACED = 1000

function allowance({ ratePerSecond, concurrency }: GovernorState): string {
  const most = ratePerSecond >= UNPACED ? '' : `at most ${perSecond(ratePerSecond)}, `
  return ` (${most}${concurrency} at once)`
}

function pause({ governor, trouble, confirmingUntil, now, stopping }: Overall): string[] {
  if (stopping) return ['Stopping: what is under way is finished first']
  if (trouble && trouble.kind !== 'asked-to-wait') return [troubleText(trouble, now)]
  if (confirmingUntil !== undefined) return [confirmingText(confirmingUntil, now)]
  const reason = pauseReason(governor, now)
  return reason === undefined ? [] : [`Paused: ${reason}`]
}

/** Since when, when it is tried again, and when the run gives up. */
export function troubleText({ kind, reason, since, nextTryAt, givesUpAt }: Unreachable, now: number): string {
  const what = kind === 'refused' ? 'The API has granted no access' : 'The API has not answered'
  const next = nextTryAt <= now ? 'trying now' : `next try in ${duration(Math.max(1000, nextTryAt - now))}`
  const end = givesUpAt === undefined ? '' : `, gives up in ${duration(Math.max(1000, givesUpAt - now))}`
  return `${what} for ${duration(Math.max(1000, now - since))} (${reason}): ${next}${end}`
}

/** Until when, and what for. */
export function confirmingText(until: number, now: number): string {
  const time = isoInstant(until).slice(11, 19)
  return `Waiting until ${time} UTC to confirm suspected deletions, ${duration(Math.max(1000, until - now))} left`
}

const PAUSES: Readonly<Record<NonNullable<GovernorState['pauseReason']>, string>> = {
  asked: 'the API asks to wait',
  throttled: 'the API refused requests as too many',
  'requests-per-day': "the day's requests (api.max_requests_per_day) are used up",
}

/** Why nothing may be sent at present and for how long; undefined when it may. */
export function pauseReason(
  { pausedUntil, pauseReason: reason }: GovernorState,
  now: number,
): string | undefined {
  if (pausedUntil === undefined || reason === undefined || pausedUntil <= now) return undefined
  return `${PAUSES[reason]}, ${duration(Math.max(1000, pausedUntil - now))} left`
}
