const BLOCKS = '▁▂▃▄▅▆▇█'

/** One character for each value: a blank for undefined, a dot for 0, else a block relative to the largest value. Pure. */
export function sparkline(values: readonly (number | undefined)[]): string {
  const most = Math.max(1, ...values.map(value => value ?? 0))
  return values.map(value => character(value, most)).join('')
}

function character(value: number | undefined, most: number): string {
  if (value === undefined) return ' '
  return value === 0 ? '.' : BLOCKS.charAt(Math.ceil((value / most) * BLOCKS.length) - 1)
}
