import { BlockList, isIP } from 'node:net'
import { hostOf, isLoopbackUrl } from './loopback.ts'

/** Decides which proxy the requests to an address go through. Pure. */

export interface HttpProxy {
  /** May contain a user name and a password; `shownProxy` is the form for messages. */
  readonly url: string
  /** The setting or environment variable that names the proxy. */
  readonly source: string
}

export interface ProxyRules {
  /** For addresses that begin with `http:` and `https:`. */
  readonly http?: HttpProxy | undefined
  readonly https?: HttpProxy | undefined
  /** The content of `NO_PROXY`: hosts that are reached without a proxy. */
  readonly except?: string | undefined
}

export const NO_PROXIES: ProxyRules = {}

/** The proxy for requests to the URL; undefined for direct requests, as always on loopback. */
export function proxyFor({ http, https, except = '' }: ProxyRules, url: string): HttpProxy | undefined {
  if (isLoopbackUrl(url)) return undefined
  const { protocol, port } = new URL(url)
  const host = hostOf(url)
  const exact = port || (protocol === 'https:' ? '443' : '80')
  const isExcepted = except.split(/[\s,]+/).some(entry => matches(entry.toLowerCase(), host, exact))
  return isExcepted ? undefined : protocol === 'https:' ? https : http
}

/**
 * Whether an entry of `NO_PROXY` names the host. An entry is `*`, a domain (a dot before it is allowed, and hosts below
 * the domain match too), an IP address, or a range such as `10.0.0.0/8`. An entry with a port matches only that port.
 */
function matches(entry: string, host: string, port: string): boolean {
  if (entry === '' || entry === '*') return entry === '*'
  const [, bracketed, plain, onlyPort] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?$/.exec(entry) ?? []
  const name = bracketed ?? plain ?? entry
  if (onlyPort !== undefined && onlyPort !== port) return false
  const kind = isIP(host)
  if (kind === 0) {
    const domain = name.replace(/^\*?\./, '')
    return host === domain || host.endsWith(`.${domain}`)
  }
  const [address = '', bits = kind === 4 ? '32' : '128'] = name.split('/')
  if (isIP(address) !== kind || !/^\d{1,3}$/.test(bits) || Number(bits) > (kind === 4 ? 32 : 128))
    return false
  const family = kind === 4 ? 'ipv4' : 'ipv6'
  const range = new BlockList()
  range.addSubnet(address, Number(bits), family)
  return range.check(host, family)
}

/**
 * The address of a proxy as a URL; undefined when the text is no such address. As in curl, an address without a scheme
 * is http. It must have a dot or a port then, so that no word such as `None` is taken for a host.
 */
export function readProxyUrl(text: string): string | undefined {
  const hasScheme = /^[a-z][a-z\d+.-]*:\/\//i.test(text)
  if (!hasScheme && !/[.:]/.test(text)) return undefined
  const address = hasScheme ? text : `http://${text}`
  if (!URL.canParse(address)) return undefined
  const { protocol, hostname, username, password, pathname, search, hash, href } = new URL(address)
  const isBare = pathname === '/' && search === '' && hash === ''
  const isUsable = /^https?:$/.test(protocol) && hostname !== '' && isDecodable(username + password)
  return isBare && isUsable ? href : undefined
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

/** The address of a proxy without user name and password. */
export const shownProxy = ({ url }: HttpProxy): string => new URL(url).origin

/**
 * Raised when the proxy, not the server, is the cause. The message is a phrase without the user name and password, and
 * without the server's address, since the address of a webhook is secret.
 */
export class ProxyError extends Error {
  override readonly name = 'ProxyError'
}
