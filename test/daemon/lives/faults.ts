import type { Fault, Faults } from '../../../src/simulator/faults/faults.ts'
import type { Draw } from '../../torture/draw.ts'

/** Faults as networks and servers have them, drawn at random. */
export const drawFaults = (draw: Draw): Faults => draw.pick(FAULTS)(draw)

type MakeFaults = (draw: Draw) => Faults

const MIXED: Faults = [
  { kind: 'status', status: 500, probability: 0.1 },
  { kind: 'status', status: 503, retryAfter: 1, probability: 0.02 },
  { kind: 'reset', probability: 0.08 },
  { kind: 'reset-in-body', probability: 0.06 },
  { kind: 'truncate', probability: 0.06 },
  { kind: 'html', probability: 0.04 },
  { kind: 'wrong-type', probability: 0.04 },
]

const RARE: readonly [Fault, ...Fault[]] = [
  { kind: 'stall', probability: 0.03 },
  { kind: 'stall-in-body', probability: 0.03 },
  { kind: 'endless', probability: 0.03 },
  { kind: 'expire-cursor', uses: 0, probability: 0.3 },
  { kind: 'repeat-cursor', probability: 0.1 },
]

const ROUTES = [
  '/v1/teams',
  '/v1/meetings',
  '/v1/meetings/{meetingId}',
  '/v2/messages',
  '/v2/messages/{messageId}',
  '/v2/activities',
  '/v2/objects',
  '/v2/objects/{object}/records',
] as const

const FAULTS: readonly [MakeFaults, ...MakeFaults[]] = [
  () => MIXED,
  draw => [...MIXED, draw.pick(RARE)],
  draw => [draw.pick(RARE)],
  draw => [{ kind: draw.pick(['status', 'truncate', 'reset'] as const), route: draw.pick(ROUTES) }],
]
