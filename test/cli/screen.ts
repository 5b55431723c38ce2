/** A terminal with the controls that this program uses: line feed, cursor up, and clear. */
export function screen(columns: number, rows: number) {
  let lines: string[] = ['']
  let at = 0
  let column = 0
  let writes = 0

  const place = (character: string) => {
    if (column >= terminal.columns) newLine()
    const line = (lines[at] ?? '').padEnd(column)
    lines[at] = line.slice(0, column) + character + line.slice(column + 1)
    column += 1
  }
  const newLine = () => {
    at += 1
    column = 0
    lines[at] ??= ''
  }
  const cut = () => {
    lines[at] = (lines[at] ?? '').slice(0, column)
  }
  const CONTROLS: Record<string, (count: number) => void> = {
    A: count => {
      at = Math.max(0, at - count)
    },
    J: () => {
      cut()
      lines = lines.slice(0, at + 1)
    },
    K: cut,
    m: () => undefined,
  }

  const terminal = {
    isTTY: true,
    columns,
    rows,
    write(text: string) {
      writes += 1
      for (const [part, count, control] of text.matchAll(PARTS)) {
        if (control !== undefined) CONTROLS[control]?.(Number(count || 1))
        else if (part === '\n') newLine()
        else if (part === '\r') column = 0
        else place(part)
      }
    },
    /** Wraps lines that are longer than the new width, as terminals do. */
    resize(width: number) {
      const wrapped = lines.map(line => line.match(new RegExp(`.{1,${width}}`, 'g')) ?? [''])
      at = wrapped.slice(0, at).flat().length
      lines = wrapped.flat()
      terminal.columns = width
    },
    /** The visible lines, without the empty line of the cursor. */
    lines: () => lines.map(line => line.trimEnd()).filter((line, index) => line !== '' || index < at),
    writes: () => writes,
  }
  return terminal
}

const ESCAPE = String.fromCharCode(27)
const PARTS = new RegExp(`${ESCAPE}\\[(\\d*)([A-Za-z])|[\\s\\S]`, 'g')
