import { safeText } from '../base/safe-text.ts'

/** Standard input: a terminal in raw mode does not show what is typed. */
export interface Keyboard {
  isTTY?: boolean
  setRawMode?(isRaw: boolean): unknown
  on(event: 'data', listener: (typed: Buffer | string) => void): unknown
  off(event: 'data', listener: (typed: Buffer | string) => void): unknown
  resume(): unknown
  pause(): unknown
}

interface AskedLine {
  text: string
  keyboard: Keyboard
  /** Prints the question, and what is typed unless it is a secret. */
  write(text: string): unknown
  isSecret: boolean
  /** Aborting the signal has the effect of Ctrl-C. */
  signal: AbortSignal
}

const [ENTER, ERASE, INTERRUPT] = ['\r\n\u0004', '\u0008\u007f', '\u0003']

/**
 * Asks a person for one line.
 * @returns the trimmed answer; undefined after Ctrl-C
 */
export function ask({ text, keyboard, write, isSecret, signal }: AskedLine): Promise<string | undefined> {
  // Raw mode starts before the question is printed. From then on the terminal echoes nothing, and Ctrl-C is a character.
  keyboard.setRawMode?.(true)
  write(text)
  return new Promise(resolve => {
    let typed = ''
    const stop = () => end(undefined)
    const end = (answer: string | undefined) => {
      signal.removeEventListener('abort', stop)
      keyboard.off('data', listen)
      keyboard.setRawMode?.(false)
      keyboard.pause()
      write('\n')
      resolve(answer)
    }
    const listen = (part: Buffer | string) => {
      for (const character of String(part)) {
        if (character === INTERRUPT) return end(undefined)
        if (ENTER.includes(character)) return end(typed.trim())
        const isErasing = ERASE.includes(character)
        if (!isSecret && isErasing && typed !== '') write('\b \b')
        if (!isSecret && !isErasing) write(safeText(character))
        typed = isErasing ? typed.slice(0, -1) : typed + character
      }
    }
    signal.addEventListener('abort', stop)
    keyboard.on('data', listen)
    keyboard.resume()
  })
}
