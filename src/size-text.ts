const UNITS = ['kB', 'MB', 'GB', 'TB'] as const

const NUMBERS = new Intl.NumberFormat('en-US')

/** A number of bytes as people read it, in powers of 1000. */
export function sizeText(bytes: number): string {
  let size = bytes
  let unit = 'bytes'
  for (const larger of UNITS) {
    if (size < 1000) break
    size /= 1000
    unit = larger
  }
  const value = unit === 'bytes' || size >= 100 ? NUMBERS.format(Math.round(size)) : size.toFixed(1)
  return `${value} ${unit}`
}
