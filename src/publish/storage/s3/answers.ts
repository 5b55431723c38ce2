import { readXml, textOf } from './xml.ts'

/** What an answer of S3 means. Of its text, only known words and checked values are used. Pure. */

export interface BucketAnswer {
  status: number
  /** The error code of S3, if it is a known one. */
  code: BucketErrorCode | undefined
  /** The region of the bucket, if the answer names it. */
  region: string | undefined
  /** The clock of the server, in ms since the epoch. */
  date: number | undefined
  body: Buffer
}

/** A request without a complete answer. It may have had its effect. */
export interface LostAnswer {
  /** An error code such as `ECONNREFUSED`, or a few words. */
  lost: string
}

/** The codes that may be shown. */
const KNOWN_CODES = [
  'AccessDenied',
  'AllAccessDisabled',
  'AuthorizationHeaderMalformed',
  'BadDigest',
  'ConditionalRequestConflict',
  'EntityTooLarge',
  'ExpiredToken',
  'IllegalLocationConstraintException',
  'IncompleteBody',
  'InternalError',
  'InvalidAccessKeyId',
  'InvalidBucketName',
  'InvalidObjectState',
  'InvalidRequest',
  'InvalidToken',
  'KeyTooLongError',
  'MethodNotAllowed',
  'MissingContentLength',
  'NoSuchBucket',
  'NoSuchKey',
  'NotImplemented',
  'PermanentRedirect',
  'PreconditionFailed',
  'QuotaExceeded',
  'RequestTimeTooSkewed',
  'RequestTimeout',
  'ServiceUnavailable',
  'SignatureDoesNotMatch',
  'SlowDown',
  'TemporaryRedirect',
  'XAmzContentSHA256Mismatch',
  'XMinioStorageFull',
] as const

export type BucketErrorCode = (typeof KNOWN_CODES)[number]

/** Codes that a later try may not get, although their status says that the request was wrong. */
const TEMPORARY_CODES: readonly (string | undefined)[] = [
  'ConditionalRequestConflict',
  'IncompleteBody',
  'RequestTimeout',
  'SlowDown',
]

export type AnswerHeaders = Readonly<Record<string, string | string[] | undefined>>

export function readAnswer(status: number, headers: AnswerHeaders, body: Buffer): BucketAnswer {
  const error = status < 300 ? undefined : readXml(body.toString('utf8'))
  const code = error && textOf(error, 'Code')
  const region = headers['x-amz-bucket-region'] ?? (error && textOf(error, 'Region'))
  const date = Date.parse(String(headers['date']))
  return {
    status,
    code: KNOWN_CODES.find(known => known === code),
    region: typeof region === 'string' && /^[a-z\d-]{1,63}$/.test(region) ? region : undefined,
    date: Number.isNaN(date) ? undefined : date,
    body,
  }
}

/** Whether the same request may succeed later. A 501 says that it never will. */
export function isTemporary(answer: BucketAnswer | LostAnswer): boolean {
  if ('lost' in answer) return true
  const { status, code } = answer
  return (status >= 500 && status !== 501) || status === 429 || TEMPORARY_CODES.includes(code)
}

export interface ListedPage {
  objects: readonly { key: string; modifiedAt: number }[]
  /** For the next page; undefined after the last one. */
  token: string | undefined
}

/** A page of ListObjectsV2. Undefined when it is none, or says that there are more and not how to get them. */
export function readListedPage(body: Buffer): ListedPage | undefined {
  const root = readXml(body.toString('utf8'))
  if (root?.name !== 'ListBucketResult') return undefined
  const isEncoded = textOf(root, 'EncodingType') === 'url'
  const objects: { key: string; modifiedAt: number }[] = []
  for (const element of root.children.filter(({ name }) => name === 'Contents')) {
    const key = decodedKey(textOf(element, 'Key'), isEncoded)
    if (key === undefined) return undefined
    objects.push({ key, modifiedAt: Date.parse(textOf(element, 'LastModified') ?? '') })
  }
  const isLast = textOf(root, 'IsTruncated') !== 'true'
  const token = textOf(root, 'NextContinuationToken')
  if (!isLast && !token) return undefined
  return { objects, token: isLast ? undefined : token }
}

function decodedKey(text: string | undefined, isEncoded: boolean): string | undefined {
  if (!isEncoded) return text
  try {
    return text && decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}
