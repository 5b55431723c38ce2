/** Standard input: a terminal in raw mode does not show what is typed. */
export interface Keyboard {
  isTTY?: boolean
  setRawMode?(isRaw: boolean): unknown
  on(event: 'data', listener: (typed: Buffer | string) => void): unknown
  off(event: 'data', listener: (typed: Buffer | string) => void): unknown
  resume(): unknown
  pause(): unknown
}

interface SecretQuestion {
  text: string
  keyboard: Keyboard
  /** Prints the question. The answer is never printed. */
  write(text: string): unknown
  /** Aborting it has the effect of Ctrl-C. */
  signal: AbortSignal
}

const [ENTER, ERASE, INTERRUPT] = ['\r\n\u0004', '\u0008\u007f', '\u0003']

/**
 * Asks for a secret without showing what is typed.
 * @returns the trimmed answer; undefined after Ctrl-C
 */
export function askSecret({ text, keyboard, write, signal }: SecretQuestion): Promise<string | undefined> {
  // Raw mode starts before the question is printed. From then on nothing typed is echoed, and Ctrl-C is a character.
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
        typed = ERASE.includes(character) ? typed.slice(0, -1) : typed + character
      }
    }
    signal.addEventListener('abort', stop)
    keyboard.on('data', listen)
    keyboard.resume()
  })
}
