/** Says why a connection failed, in the same words for the API and for a bucket, and what to do about it. Pure. */

/** The first pattern that matches the error code counts. */
const TLS_REASONS: readonly { pattern: RegExp; what: string; advice?: string }[] = [
  {
    // When the port is not a TLS port and the server closes the connection, `failureCode` returns the first of these
    // codes. Otherwise Node reports the second or third.
    pattern: /^(ERR_TLS_HANDSHAKE|ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_PACKET_LENGTH_TOO_LONG)$/,
    what: 'this port does not seem to speak TLS',
    advice: 'for a server on this machine, try http:// in its address',
  },
  {
    pattern: /^(DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|INVALID_CA|CERT_UNTRUSTED)/,
    what: 'its certificate is not trusted',
    advice: 'for one of your company, name its file by NODE_EXTRA_CA_CERTS',
  },
  { pattern: /^CERT_HAS_EXPIRED$/, what: 'its certificate has expired' },
  { pattern: /^CERT_NOT_YET_VALID$/, what: 'its certificate is not valid yet' },
  {
    pattern: /^(ERR_TLS_CERT_ALTNAME_INVALID|HOSTNAME_MISMATCH)$/,
    what: 'its certificate is for another host',
  },
  { pattern: /^(ERR_TLS|ERR_SSL|EPROTO$|CERT_)/, what: 'TLS failed' },
]

/** Why TLS failed, as a phrase about the server; undefined for a code of something else. */
export function tlsReason(code: string): string | undefined {
  const found = TLS_REASONS.find(({ pattern }) => pattern.test(code))
  if (found === undefined) return undefined
  const { what, advice } = found
  return `${what} (${code})${advice === undefined ? '' : `; ${advice}`}`
}

export const meansNoTls = (code: string): boolean => TLS_REASONS[0]?.pattern.test(code) === true

/** The phrases of failures that last until a person removes their cause. They are found in stored reasons too. */
const LASTING: readonly { pattern: RegExp; todo(source: string): string }[] = [
  {
    pattern: /the proxy \S+ \(([\w.]+)\) (?:asks for a|refuses the) user name and password/,
    todo: source => `Correct the user name and password of the proxy in ${source}.`,
  },
  {
    pattern: /its certificate is not trusted/,
    todo: () =>
      'If the certificate is one of your company, name its file by NODE_EXTRA_CA_CERTS. If not, another server answers: check the address and the proxy.',
  },
  {
    pattern: /its certificate (?:has expired|is not valid yet)/,
    todo: () => 'Have the certificate renewed, or correct the clock of this machine.',
  },
  {
    pattern: /its certificate is for another host/,
    todo: () => 'Check the address and the proxy, or have the certificate corrected.',
  },
]

/**
 * What a person has to do about a failure that lasts until then; undefined when the failure may end by itself.
 * @param reason a text with the phrase of `tlsReason` or of a ProxyError
 */
export function connectionTodo(reason: string): string | undefined {
  for (const { pattern, todo } of LASTING) {
    const found = pattern.exec(reason)
    if (found) return todo(found[1] ?? '')
  }
  return undefined
}

/**
 * The code of an error, or of its cause; `unknown` without one. When Node tried several addresses, the error has a list
 * of errors, and the first of them counts.
 */
export function failureCode(error: unknown, depth = 0): string {
  if (typeof error !== 'object' || error === null || depth > 5) return 'unknown'
  const known = codeOfKind(error)
  if (known !== undefined) return known
  if ('code' in error && typeof error.code === 'string' && /^[A-Z][A-Z0-9_]{1,60}$/.test(error.code)) {
    return error.code
  }
  if ('cause' in error && error.cause !== undefined) return failureCode(error.cause, depth + 1)
  return 'errors' in error && Array.isArray(error.errors)
    ? failureCode(error.errors[0], depth + 1)
    : 'unknown'
}

/**
 * A code for two kinds of error: a reset during the TLS handshake, whose own code is too general, and an error of
 * undici's HTTP parser, which may have no code.
 */
function codeOfKind(error: object): string | undefined {
  if (!(error instanceof Error)) return undefined
  if (error.message.includes('before secure TLS connection was established')) return 'ERR_TLS_HANDSHAKE'
  return error.name === 'HTTPParserError' ? 'HPE_INVALID' : undefined
}
