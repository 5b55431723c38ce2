import { mix } from './random.ts'

/** Ids that can be converted back to their index, so that no table of ids is needed. */
export interface Ids {
  of(index: number): string
  /** -1 when no index has this id. Letter case does not matter. */
  indexOf(id: string): number
}

export type IdShape = 'uuid' | 'hex24' | 'hex16'

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))
const PATTERNS: Record<IdShape, RegExp> = {
  uuid: /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i,
  hex24: /^[0-9a-f]{24}$/i,
  hex16: /^[0-9a-f]{16}$/i,
}

/** `salt` keeps the ids of two kinds of item apart. */
export function createIds(seed: number, salt: number, shape: IdShape): Ids {
  const of = (index: number): string => {
    const a = scramble(seed, salt, index)
    const b = mix(seed, salt + 101, a)
    if (shape === 'hex16') return hex8(a) + hex8(b)
    const c = mix(seed, salt + 102, a)
    if (shape === 'hex24') return hex8(a) + hex8(b) + hex8(c)
    const d = mix(seed, salt + 103, a)
    const left = hex8(b)
    const right = hex8(c)
    return `${hex8(a)}-${left.slice(0, 4)}-4${left.slice(4, 7)}-${'89ab'[d & 3]}${right.slice(0, 3)}-${right.slice(3, 7)}${hex8(d)}`
  }
  return {
    of,
    indexOf: id => {
      if (!PATTERNS[shape].test(id)) return -1
      const index = unscramble(seed, salt, Number.parseInt(id.slice(0, 8), 16))
      return of(index) === id.toLowerCase() ? index : -1
    },
  }
}

export function isUuid(text: string): boolean {
  return PATTERNS.uuid.test(text)
}

function hex8(value: number): string {
  return `${HEX[value >>> 24]}${HEX[(value >>> 16) & 255]}${HEX[(value >>> 8) & 255]}${HEX[value & 255]}`
}

const ROUNDS = 4

/** A Feistel network: an invertible permutation of the 32-bit numbers. */
function scramble(seed: number, salt: number, index: number): number {
  let left = index >>> 16
  let right = index & 0xffff
  for (let round = 0; round < ROUNDS; round++) {
    const next = left ^ (mix(seed + round, salt, right) & 0xffff)
    left = right
    right = next
  }
  return ((left << 16) | right) >>> 0
}

function unscramble(seed: number, salt: number, value: number): number {
  let left = value >>> 16
  let right = value & 0xffff
  for (let round = ROUNDS - 1; round >= 0; round--) {
    const previous = right ^ (mix(seed + round, salt, left) & 0xffff)
    right = left
    left = previous
  }
  return ((left << 16) | right) >>> 0
}
