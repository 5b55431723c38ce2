import { connectionTodo, failureCode, tlsReason } from '../../base/connection-faults.ts'
import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import { ProxyError } from '../../base/proxies.ts'

/** What a failure of a bucket means. Of the text of an answer, only known words and checked values are used. Pure. */

export type BucketFailure = BucketRefusal | LostAnswer

/** An answer with an error. */
export interface BucketRefusal {
  status: number
  /** The error code of S3, if it is a known one. */
  code: BucketErrorCode | undefined
  /** The region of the bucket, if the answer names it. */
  region: string | undefined
  /** True: the clock of this machine was wrong, and the next request is signed with the time of the server. */
  isClockCorrected: boolean
}

/** A request without a complete answer. The request may have taken effect. */
export interface LostAnswer {
  /** An error code such as `ECONNREFUSED`, or a phrase. */
  lost: string
}

/** The error codes that messages may show. */
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

/** Codes of temporary failures, although their status says that the request was wrong. */
const TEMPORARY_CODES: readonly (string | undefined)[] = [
  'ConditionalRequestConflict',
  'IncompleteBody',
  'RequestTimeout',
  'SlowDown',
]

/** What the S3 client of AWS adds to an error that is an answer. */
interface ErrorOfClient {
  name?: unknown
  Region?: unknown
  $metadata?: { httpStatusCode?: number; clockSkewCorrected?: boolean }
  $response?: { statusCode?: number; headers?: Readonly<Record<string, string>> }
}

export function failureOf(error: unknown): BucketFailure {
  const { name, Region, $metadata, $response }: ErrorOfClient = error instanceof Error ? error : {}
  const status = $metadata?.httpStatusCode ?? $response?.statusCode
  if (status === undefined || status < 300) return { lost: lostReason(error) }
  const region = $response?.headers?.['x-amz-bucket-region'] ?? Region
  return {
    status,
    code: KNOWN_CODES.find(known => known === name),
    region: typeof region === 'string' && /^[a-z\d-]{1,63}$/.test(region) ? region : undefined,
    isClockCorrected: $metadata?.clockSkewCorrected ?? false,
  }
}

/** A phrase, or the code of the system or of undici; never the text of an error, which may quote the answer. */
function lostReason(error: unknown): string {
  if (error instanceof ProxyError) return error.message
  const code = failureCode(error)
  return tlsReason(code) ?? (code === 'unknown' ? 'the connection failed' : code)
}

/** Whether the same request may succeed later. Status 501 says that it never will. */
export function isTemporary(failure: BucketFailure): boolean {
  if ('lost' in failure) return connectionTodo(failure.lost) === undefined
  const { status, code, isClockCorrected } = failure
  if (code === 'RequestTimeTooSkewed') return isClockCorrected
  return (status >= 500 && status !== 501) || status === 429 || TEMPORARY_CODES.includes(code)
}

/** The bucket as the user named it, for messages. */
export interface BucketWords {
  /** `s3://bucket/prefix` */
  name: string
  bucket: string
  region: string
  /** The address of the API. */
  url: string
}

interface BucketFault {
  code: string
  problem: string
  hint: string
}

/** The error for a failure, with a hint. It has no text of the answer. */
export const bucketError = (words: BucketWords, answer: BucketFailure): StopError =>
  faultError(faultOf(words, answer))

const faultError = ({ code, problem, hint }: BucketFault): StopError =>
  new StopError(problem, { code, hint, exitStatus: EXIT_STATUS.databaseUnavailable })

function faultOf(words: BucketWords, answer: BucketFailure): BucketFault {
  if ('lost' in answer) return unreachable(words, answer)
  const status = answer.code === undefined ? `HTTP ${answer.status}` : `HTTP ${answer.status}, ${answer.code}`
  const known = (answer.code && faultsByCode(words)[answer.code]) ?? elsewhere(words, answer)
  const { code, problem, hint } = known ?? byStatus(words, answer)
  return { code, problem: `${problem} (${status})`, hint }
}

const unreachable = ({ url }: BucketWords, { lost }: LostAnswer): BucketFault => ({
  code: 'publish-unreachable',
  problem: `${url} cannot be reached: ${lost}`,
  hint: `${connectionTodo(lost) ?? 'Check publish.s3_endpoint, publish.s3_region, the network of this machine, and the proxy if there is one.'} Readers still see the last complete publication.`,
})

function faultsByCode({ name, bucket, url }: BucketWords): {
  readonly [Code in BucketErrorCode]?: BucketFault
} {
  const clock = {
    code: 'publish-clock',
    problem: `The S3 API at ${url} refuses the time of this machine`,
    hint: 'Set the clock of this machine, for example by NTP. S3 allows a difference of 15 minutes.',
  }
  const token = {
    code: 'publish-token',
    problem: `The session token for ${name} is not valid any more`,
    hint: 'Get new temporary credentials, and set publish.s3_access_key_id, publish.s3_secret_access_key and publish.s3_session_token together.',
  }
  return {
    NoSuchBucket: {
      code: 'publish-no-bucket',
      problem: `There is no bucket ${bucket} at ${url}`,
      hint: 'Create the bucket, or check its name and publish.s3_endpoint.',
    },
    InvalidAccessKeyId: {
      code: 'publish-unknown-key',
      problem: `The S3 API at ${url} does not know the access key`,
      hint: 'Check publish.s3_access_key_id and publish.s3_endpoint.',
    },
    SignatureDoesNotMatch: {
      code: 'publish-signature',
      problem: `The S3 API at ${url} refuses the signature`,
      hint: 'Check publish.s3_secret_access_key.',
    },
    RequestTimeTooSkewed: clock,
    ExpiredToken: token,
    InvalidToken: token,
    NotImplemented: withoutConditions(url),
  }
}

const withoutConditions = (url: string): BucketFault => ({
  code: 'publish-no-condition',
  problem: `The S3 API at ${url} does not support If-None-Match for PUT`,
  hint: 'Without it, two publications at the same time could mix. Use storage that supports it, or publish to a folder and copy that.',
})

export const conditionError = (url: string): StopError => faultError(withoutConditions(url))

/** A redirect, or a refusal that names another region. */
function elsewhere({ bucket, region, url }: BucketWords, answer: BucketRefusal): BucketFault | undefined {
  const { status, code: refused, region: other } = answer
  const isRedirect = (status >= 300 && status < 400) || refused === 'IllegalLocationConstraintException'
  const isNamed = other !== undefined && other !== region
  if (!isRedirect && !(status === 400 && isNamed)) return undefined
  const code = 'publish-region'
  return isNamed
    ? {
        code,
        problem: `The bucket ${bucket} is in the region ${other}, not in ${region}`,
        hint: `Set publish.s3_region to "${other}".`,
      }
    : {
        code,
        problem: `The S3 API at ${url} redirects to another address, which parley does not follow`,
        hint: 'Check publish.s3_endpoint, publish.s3_region and publish.s3_path_style.',
      }
}

function byStatus({ name, url }: BucketWords, { status }: BucketRefusal): BucketFault {
  if (status === 401 || status === 403)
    return {
      code: 'publish-denied',
      problem: `Access to ${name} is denied`,
      hint: 'The access key needs s3:ListBucket for the bucket, and s3:GetObject, s3:PutObject and s3:DeleteObject for the objects below the prefix. Some servers also answer like this to a wrong secret, and to a session token that has expired.',
    }
  if (status >= 500 || status === 429)
    return {
      code: 'publish-failing',
      problem: `The S3 API at ${url} kept failing`,
      hint: 'Run parley publish again later; it continues with what was published. Readers still see the last complete publication.',
    }
  return {
    code: 'publish-refused',
    problem: `The S3 API at ${url} refuses a request for ${name}`,
    hint: 'Check publish.s3_endpoint, publish.s3_region and publish.s3_path_style.',
  }
}

/** The error for an answer with a 2xx status that S3 would not give. */
export const noBucketError = ({ url }: BucketWords): StopError =>
  faultError({
    code: 'publish-no-api',
    problem: `The answer of ${url} is not that of an S3 API`,
    hint: 'Check publish.s3_endpoint. A web console has another port than the API.',
  })

export const tooLargeError = (name: string, path: string): StopError =>
  faultError({
    code: 'publish-too-large',
    problem: `A file for ${name} is larger than 5 GB, the limit of S3 for one PUT: ${path}`,
    hint: 'Publish to a folder instead, and copy that with a program that uploads in parts.',
  })

/** @param name of the target */
export function credentialsError(name: string): StopError {
  return new StopError(
    `There are no credentials for ${name}: publish.s3_access_key_id and publish.s3_secret_access_key are not set, and the environment, the profile and the role of this machine give none`,
    {
      code: 'bad-settings',
      hint: 'Set publish.s3_access_key_id and publish.s3_secret_access_key_file. With a profile or a role, check it with: aws sts get-caller-identity. A session of AWS SSO that has ended begins again with: aws sso login.',
      exitStatus: EXIT_STATUS.settings,
    },
  )
}

/** @param name of the target */
export const lateCredentialsError = (name: string, limitMs: number): StopError =>
  faultError({
    code: 'publish-credentials-late',
    problem: `Nothing gave credentials for ${name} within ${limitMs / 1000} s`,
    hint: 'Check the credential_process of the profile, or the service of the role: AWS_CONTAINER_CREDENTIALS_FULL_URI, AWS_ENDPOINT_URL_STS and the network of this machine. Readers still see the last complete publication.',
  })

/**
 * The error for an address from other settings than `publish.s3_endpoint`, which is checked where settings are read.
 */
export function plainHttpError(url: string): StopError {
  return new StopError(`${url} is plain http, which is accepted for this machine only`, {
    code: 'bad-settings',
    hint: 'Use an https address in AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_S3 and endpoint_url of the profile.',
    exitStatus: EXIT_STATUS.settings,
  })
}
