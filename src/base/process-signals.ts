/** The signals that parley does not leave to Node. Each program calls one of these functions first. */

/**
 * Without a handler, SIGUSR1 opens Node's debugger on a port of this machine. Any user could then read the memory of the
 * process, with the API key. Recipes for rotating logs send this signal.
 */
export function keepDebuggerClosed(): void {
  process.on('SIGUSR1', () => undefined)
}

/**
 * Makes a child process ignore the signals that stop a command. The parent gets them too, handles them and kills the
 * child.
 */
export function leaveSignalsToParent(): void {
  keepDebuggerClosed()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
}
