import dns from 'node:dns'

/**
 * Preloaded into a program: names below `localhost` are this machine, as RFC 6761 wants it. Not every resolver knows
 * them.
 */
const { lookup } = dns
dns.lookup = (host, ...more) => lookup(host.endsWith('.localhost') ? 'localhost' : host, ...more)
