/** `[====>    ]` with `width` characters between the brackets. ASCII is one column wide on every terminal. Pure. */
export function progressBar(share: number, width: number, paint: (bar: string) => string): string {
  const filled = Math.min(width, Math.floor(share * width))
  const bar = `${'='.repeat(filled)}${filled < width ? '>' : ''}`
  return `[${paint(bar)}${' '.repeat(width - bar.length)}]`
}
