import type { GovernorState } from '../../api/governor/governor.ts'
import { isoInstant } from '../../base/clock.ts'
import { wholeNumber } from '../../base/whole-number.ts'
import { RESOURCE_NAMES, type ResourceName } from '../../declare/resource-names.ts'
import type { Unreachable } from '../../engine/requests/reachability.ts'
import { GATE_KINDS } from '../../store/sync/gates.ts'
import { styledText } from '../../terminal/output.ts'
import {
  clockText,
  countText,
  durationText,
  foldText,
  rateText,
  wholeSecondsText,
} from '../../terminal/wording.ts'

/** The display of a running backfill: one line for each active resource, and two or three for the whole run. Pure. */

export interface ResourceBar {
  resource: ResourceName
  done: number
  total: number | undefined
  /** Whether the total is an estimate. */
  isGuess: boolean
  /** Rows read in this run. */
  rows: number
}

export interface Overall {
  finished: number
  resources: number
  requests: number
  throttled: number
  /** Recent responses per second. */
  rate: number | undefined
  governor: GovernorState
  /** Why the API cannot be read now; undefined when it can. */
  trouble: Unreachable | undefined
  /** End of the wait to confirm suspected deletions, in ms since the epoch; undefined when there is no wait. */
  confirmingUntil: number | undefined
  /** The present, in ms since the epoch. */
  now: number
  elapsedMs: number
  leftMs: number | undefined
  isStopping: boolean
}

export interface Screen {
  columns: number
  rows: number
  colour: boolean
}

/** Draws lines that fit on the screen. Resources that do not fit are only counted. */
export function drawBars(bars: readonly ResourceBar[], overall: Overall, picture: Screen): string[] {
  const footer = [
    ...totalLines(overall).map(line => line.slice(0, picture.columns)),
    ...waitLines(overall).flatMap(line => foldText(line, picture.columns)),
  ]
  const room = Math.max(1, picture.rows - footer.length - 1)
  const shown = bars.slice(0, room)
  const lines = shown.map(bar => drawBar(bar, columnWidths(shown), picture))
  const hidden = bars.length - shown.length
  return [...lines, ...(hidden > 0 ? [`and ${hidden} more`] : []), ...footer]
}

interface ColumnWidths {
  name: number
  share: number
  rows: number
}

function columnWidths(bars: readonly ResourceBar[]): ColumnWidths {
  const widest = (texts: string[]) => Math.max(0, ...texts.map(text => text.length))
  return {
    // Constant, so that the bars do not move sideways when the set of resources changes.
    name: widest([...RESOURCE_NAMES]),
    share: widest(bars.map(shareText)),
    rows: widest(bars.map(rowsText)),
  }
}

const MAX_BAR_WIDTH = 40
const MIN_BAR_WIDTH = 8

function drawBar(bar: ResourceBar, { name, share: shareWidth, rows }: ColumnWidths, picture: Screen): string {
  const texts = [bar.resource.padEnd(name), shareText(bar).padStart(shareWidth), rowsText(bar).padStart(rows)]
  const taken = texts.join('  ').length + 4
  const width = Math.min(MAX_BAR_WIDTH, picture.columns - taken)
  const [label = '', ...numbers] = texts
  if (width < MIN_BAR_WIDTH) return texts.join('  ').slice(0, picture.columns)
  return [label, gauge(bar, width, picture.colour), ...numbers].join('  ')
}

/**
 * The bar of a resource, such as `[====>    ]` with `width` characters between the brackets; blank when its total is 0
 * or not known. ASCII is one column wide on every terminal.
 */
function gauge({ done, total }: ResourceBar, width: number, colour: boolean): string {
  if (total === undefined || total === 0) return ' '.repeat(width + 2)
  const filled = Math.min(width, Math.floor((done / total) * width))
  const bar = `${'='.repeat(filled)}${filled < width ? '>' : ''}`
  return `[${colour ? styledText('green', bar) : bar}${' '.repeat(width - bar.length)}]`
}

function shareText({ done, total, isGuess }: ResourceBar): string {
  if (total === undefined || total === 0) return ''
  return `${wholeNumber(Math.min(done, total))} of ${isGuess ? '~' : ''}${wholeNumber(total)}`
}

const rowsText = ({ rows }: ResourceBar) => countText(rows, 'row')

function totalLines(overall: Overall): string[] {
  const { finished, resources, requests, throttled, elapsedMs, leftMs, rate, governor } = overall
  const speed = rate === undefined ? [] : [`${rateText(rate)} requests/s${allowanceText(governor)}`]
  const left = leftMs === undefined ? [] : [`about ${wholeSecondsText(leftMs)} left`]
  return [
    [
      ...speed,
      countText(requests, 'request'),
      ...(throttled > 0 ? [`${wholeNumber(throttled)} refused (429)`] : []),
    ].join(', '),
    [
      `${finished} of ${resources} resources read`,
      ...(elapsedMs < 1000 ? [] : [`${durationText(elapsedMs)} elapsed`]),
      ...left,
    ].join(', '),
  ]
}

/** From this rate per second on, only the response time limits the requests. */
const UNLIMITED_RATE = 1000

function allowanceText({ ratePerSecond, concurrency }: GovernorState): string {
  const most = ratePerSecond >= UNLIMITED_RATE ? '' : `at most ${rateText(ratePerSecond)}, `
  return ` (${most}${concurrency} at once)`
}

function waitLines(overall: Overall): string[] {
  if (overall.isStopping) return ['Stopping after the requests in flight']
  const wait = currentWait(overall)
  return wait === undefined ? [] : [wait.reason]
}

/** Why no request is sent now, and until when, in ms since the epoch; undefined when requests are sent. */
export function currentWait({ trouble, confirmingUntil, governor, now }: Overall) {
  if (trouble) return { reason: troubleText(trouble, now), until: trouble.nextTryAt }
  if (confirmingUntil !== undefined) {
    const left = wholeSecondsText(confirmingUntil - now)
    const reason = `Waiting until ${clockText(isoInstant(confirmingUntil), now)} to confirm suspected deletions, ${left} left`
    return { reason, until: confirmingUntil }
  }
  const { pausedUntil: until = now, pauseReason } = governor
  if (pauseReason === undefined || until <= now) return undefined
  return { reason: `Paused: ${PAUSES[pauseReason]}, ${wholeSecondsText(until - now)} left`, until }
}

/** Since when and why the API cannot be read, when the next try is, and when the run gives up. */
function troubleText({ kind, reason, since, nextTryAt, givesUpAt }: Unreachable, now: number): string {
  const next = nextTryAt <= now ? 'trying now' : `next try in ${wholeSecondsText(nextTryAt - now)}`
  const end = givesUpAt === undefined ? '' : `, gives up in ${wholeSecondsText(givesUpAt - now)}`
  return `${GATE_KINDS[kind].hasBeen} for ${wholeSecondsText(now - since)} (${reason}): ${next}${end}`
}

const PAUSES: Readonly<Record<NonNullable<GovernorState['pauseReason']>, string>> = {
  asked: 'the API asked to wait',
  throttled: 'the API throttled requests (429)',
  'requests-per-day': "today's requests are used up (api.max_requests_per_day)",
}
