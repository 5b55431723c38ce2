import { wholeNumber } from './whole-number.ts'

const UNITS = ['kB', 'MB', 'GB', 'TB'] as const

/** A size for people, in powers of 1000: `999 bytes`, `1.5 MB`, `120 GB`. */
export function sizeText(bytes: number): string {
  let size = bytes
  let unit = 'bytes'
  for (const larger of UNITS) {
    if (size < 1000) break
    size /= 1000
    unit = larger
  }
  const value = unit === 'bytes' || size >= 100 ? wholeNumber(Math.round(size)) : size.toFixed(1)
  return `${value} ${unit}`
}
