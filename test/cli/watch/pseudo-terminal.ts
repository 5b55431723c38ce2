import { execFileSync, spawn } from 'node:child_process'
import { emptyFolder, PROGRAM } from '../parley.ts'
import { screen } from '../screen.ts'
import type { Test } from '../workspace.ts'

/** The built program on a pseudo-terminal of 80 × 24, which script(1) of util-linux makes. */
export interface TerminalSession {
  /** The visible lines, joined. */
  text(): string
  lines(): string[]
  isClean(): boolean
  type(keys: string): void
  resize(columns: number, rows: number): void
  /** The process id of the program, once it has started. */
  pid(): number | undefined
  /** Resolves with the rest of the screen when the program has ended. It ends with the status and the terminal's modes. */
  ended: Promise<string>
}

/** `exec` gives the program the process id that is printed before. */
const SCRIPT = `stty cols 80 rows 24
tty
sh -c 'echo "pid $$"; exec "$0" "$@"' "$@"
echo "status $?"
stty -a`

export function startOnTerminal(test: Test, args: readonly string[], cwd = emptyFolder()): TerminalSession {
  const command = ['sh', '-c', SCRIPT, 'sh', process.execPath, PROGRAM, ...args].map(quoted).join(' ')
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    cwd,
    env: { PATH: process.env['PATH'], TERM: 'xterm' },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const closed = new Promise<void>(resolve => child.on('close', () => resolve()))
  test.onTestFinished(async () => {
    child.kill('SIGKILL')
    await closed
  })
  const terminal = screen(80, 24)
  let all = ''
  let partial = ''
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    all += part
    // An escape sequence may be cut at the end of a part.
    const [whole, rest] = splitAtPartialEscape(partial + part)
    partial = rest
    terminal.write(whole)
  })
  const found = (pattern: RegExp) => pattern.exec(all)?.[1]
  return {
    text: () => terminal.lines().join('\n'),
    lines: terminal.lines,
    isClean: terminal.isClean,
    type: keys => child.stdin.write(keys),
    resize(columns, rows) {
      const name = found(/^(\/dev\/\S+)/m) ?? ''
      terminal.resize(columns)
      terminal.rows = rows
      execFileSync('stty', ['-F', name, 'cols', String(columns), 'rows', String(rows)])
    },
    pid: () => Number(found(/^pid (\d+)/m)) || undefined,
    ended: closed.then(() => terminal.lines().join('\n')),
  }
}

const quoted = (argument: string) => `'${argument.replaceAll("'", `'\\''`)}'`

function splitAtPartialEscape(text: string): [string, string] {
  const at = text.lastIndexOf('\u001b')
  return at >= 0 && /^.(\[[?\d]*)?$/s.test(text.slice(at)) ? [text.slice(0, at), text.slice(at)] : [text, '']
}
