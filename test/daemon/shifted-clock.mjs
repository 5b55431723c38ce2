import { readFileSync } from 'node:fs'

/**
 * Loaded before a program with `--import`: shifts the wall clock of the process by the milliseconds in the file
 * named in SHIFTED_CLOCK. At SIGUSR2 the file is read again, and the clock jumps.
 */
const file = process.env['SHIFTED_CLOCK'] ?? ''
const RealDate = globalThis.Date
let shift = Number(readFileSync(file, 'utf8'))

process.on('SIGUSR2', () => {
  shift = Number(readFileSync(file, 'utf8'))
})

globalThis.Date = class ShiftedDate extends RealDate {
  constructor(...given) {
    if (given.length === 0) super(RealDate.now() + shift)
    else super(...given)
  }

  static now() {
    return RealDate.now() + shift
  }
}
