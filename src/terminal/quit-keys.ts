import type { Keyboard } from './ask.ts'

/** `q`, Ctrl-C and Ctrl-D. In raw mode Ctrl-C is a character and sends no signal. */
const QUIT_KEYS = 'qQ\u0003\u0004'
const ESCAPE = '\u001b'

/**
 * Calls `quit` when one of the keys is pressed that end a display. Nothing typed is shown.
 * @returns a function that gives the keyboard back
 */
export function listenForQuit(keyboard: Keyboard, quit: () => void): () => void {
  const listen = (typed: Buffer | string) => {
    const text = String(typed)
    // Arrows and function keys send an escape sequence, which may contain any letter.
    if (!text.startsWith(ESCAPE) && [...text].some(key => QUIT_KEYS.includes(key))) quit()
  }
  keyboard.setRawMode?.(true)
  keyboard.on('data', listen)
  keyboard.resume()
  return () => {
    keyboard.off('data', listen)
    keyboard.setRawMode?.(false)
    keyboard.pause()
  }
}
