/** The signals that parley does not leave to Node, and the one that it sends to a process group. */

/**
 * Every program calls this first, or `leaveSignalsToParent`.
 *
 * Without a handler, SIGUSR1 opens Node's debugger on a port of this machine. Any user could then read the memory of the
 * process, with the API key. Recipes for rotating logs send this signal.
 */
export function keepDebuggerClosed(): void {
  process.on('SIGUSR1', () => undefined)
}

/**
 * Makes a child process ignore the signals that stop a command. A service manager may send them to all processes of a
 * service. The parent handles them and kills the child.
 */
export function leaveSignalsToParent(): void {
  keepDebuggerClosed()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
}

/** @param leader the process that leads the group; undefined: it could not be started */
export function killGroup(leader: number | undefined): void {
  if (leader === undefined) return
  try {
    process.kill(-leader, 'SIGKILL')
  } catch {
    // The group has ended.
  }
}
