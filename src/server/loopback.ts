/** Whether an address, or a name, is that of this machine as only this machine sees it. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}

/**
 * Whether a `Host` header, with or without a port, names loopback. A page in a browser can have a name of its own
 * lead to loopback and so read what is served there, but cannot keep that name out of the header.
 */
export function namesLoopback(header: string | undefined): boolean {
  const [, bracketed, plain] = /^(?:\[([0-9a-f:]+)\]|([\w.-]+))(?::\d{1,5})?$/i.exec(header ?? '') ?? []
  const host = bracketed ?? plain
  return host !== undefined && isLoopback(host.toLowerCase())
}
