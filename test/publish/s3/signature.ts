import { createHash, createHmac } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

/** SigV4 as the documentation of AWS describes it, on the bytes of the request and without the library of parley. */

export interface SignedCall {
  method: string
  /** As sent: path and query. */
  target: string
  headers: IncomingHttpHeaders
  body: Buffer
}

export interface FakeAccess {
  id: string
  secret: string
  token?: string
  region: string
}

/** The error code of S3 for a request that is not signed as it should; undefined when it is. */
export function signatureFault(call: SignedCall, access: FakeAccess, now: number): string | undefined {
  const { authorization = '' } = call.headers
  const [, id, day, region, names = '', signature] =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, SignedHeaders=([^,]+), Signature=([\da-f]{64})$/.exec(
      authorization,
    ) ?? []
  if (id !== access.id) return 'InvalidAccessKeyId'
  if (region !== access.region) return 'AuthorizationHeaderMalformed'
  const date = String(call.headers['x-amz-date'])
  const at = Date.parse(date.replace(/^(....)(..)(..T..)(..)(..Z)$/, '$1-$2-$3:$4:$5'))
  if (!(Math.abs(at - now) < 15 * 60_000) || !date.startsWith(String(day))) return 'RequestTimeTooSkewed'
  if (call.headers['x-amz-security-token'] !== access.token) return 'InvalidToken'
  if (call.headers['x-amz-content-sha256'] !== sha256(call.body)) return 'XAmzContentSHA256Mismatch'
  const mustBeSigned = Object.keys(call.headers).filter(name => /^(host|if-.*|x-amz-.*)$/.test(name))
  const signed = names.split(';')
  if (mustBeSigned.some(name => !signed.includes(name))) return 'SignatureDoesNotMatch'
  const text = ['AWS4-HMAC-SHA256', date, `${day}/${region}/s3/aws4_request`, sha256(canonical(call, signed))]
  const key = [String(day), String(region), 's3', 'aws4_request'].reduce<Buffer | string>(
    (secret, part) => createHmac('sha256', secret).update(part).digest(),
    `AWS4${access.secret}`,
  )
  const expected = createHmac('sha256', key).update(text.join('\n')).digest('hex')
  return signature === expected ? undefined : 'SignatureDoesNotMatch'
}

const sha256 = (content: Buffer | string): string => createHash('sha256').update(content).digest('hex')

function canonical({ method, target, headers }: SignedCall, signed: readonly string[]): string {
  const [path = '', query = ''] = target.split('?')
  const pairs = query.split('&').filter(pair => pair !== '')
  return [
    method,
    path.split('/').map(encodedAgain).join('/'),
    pairs
      .map(pair => pair.split('=').map(encodedAgain).join('='))
      .sort()
      .join('&'),
    ...signed.map(name => `${name}:${String(headers[name]).trim()}`),
    '',
    signed.join(';'),
    headers['x-amz-content-sha256'],
  ].join('\n')
}

/** Decodes, and encodes every byte that is not an unreserved character. */
function encodedAgain(part: string): string {
  return Array.from(Buffer.from(decodeURIComponent(part)), byte =>
    /[\w.~-]/.test(String.fromCharCode(byte))
      ? String.fromCharCode(byte)
      : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`,
  ).join('')
}
