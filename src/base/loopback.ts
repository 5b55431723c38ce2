/** Whether the address or host name is loopback, which only this machine can reach. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}

/** Whether the URL leads to this machine only. A request there needs no encryption and no proxy. */
export function isLoopbackUrl(url: string): boolean {
  return isLoopback(hostOf(url))
}

/**
 * Whether others on the network could read what is sent to the URL, such as a credential. A setting with such a URL is
 * refused or causes a warning; test/config/addresses.test.ts checks every such setting.
 */
export function isReadableOnTheWay(url: string): boolean {
  return new URL(url).protocol !== 'https:' && !isLoopbackUrl(url)
}

/** The host of a URL, without the brackets of an IPv6 address. */
export function hostOf(url: string): string {
  return new URL(url).hostname.replace(/^\[(.*)\]$/, '$1')
}

/**
 * Whether a `Host` header, with or without a port, names loopback. This stops DNS rebinding: a web page can point its
 * own host name at loopback, but the browser then sends that name in the header.
 */
export function isLoopbackHeader(header: string | undefined): boolean {
  const [, bracketed, plain] = /^(?:\[([0-9a-f:]+)\]|([\w.-]+))(?::\d{1,5})?$/i.exec(header ?? '') ?? []
  const host = bracketed ?? plain
  return host !== undefined && isLoopback(host.toLowerCase())
}
