import { EXIT_STATUS, StopError } from '../../../errors.ts'
import type { BucketAnswer, BucketErrorCode, LostAnswer } from './answers.ts'

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

/** The error for an answer that was not wanted, with what to do. It has no text of the answer. */
export function bucketError(words: BucketWords, answer: BucketAnswer | LostAnswer): StopError {
  const { code, problem, hint } = faultOf(words, answer)
  return new StopError(problem, { code, hint, exitStatus: EXIT_STATUS.databaseUnavailable })
}

function faultOf(words: BucketWords, answer: BucketAnswer | LostAnswer): BucketFault {
  if ('lost' in answer) return unreachable(words, answer)
  const status = answer.code === undefined ? `HTTP ${answer.status}` : `HTTP ${answer.status}, ${answer.code}`
  const known = (answer.code && faultsByCode(words)[answer.code]) ?? elsewhere(words, answer)
  const { code, problem, hint } = known ?? byStatus(words, answer)
  return { code, problem: `${problem} (${status})`, hint }
}

const unreachable = ({ url }: BucketWords, { lost }: LostAnswer): BucketFault => ({
  code: 'publish-unreachable',
  problem: `The S3 API at ${url} cannot be reached: ${lost}`,
  hint: 'Check publish.s3_endpoint, publish.s3_region and the network of this machine. Readers still see the last publication.',
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
      hint: 'Check publish.s3_secret_access_key, and the clock of this machine.',
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

export function conditionError({ url }: BucketWords): StopError {
  const { code, problem, hint } = withoutConditions(url)
  return new StopError(problem, { code, hint, exitStatus: EXIT_STATUS.databaseUnavailable })
}

/** A redirect, or a refusal that names another region. */
function elsewhere({ bucket, region, url }: BucketWords, answer: BucketAnswer): BucketFault | undefined {
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

function byStatus({ name, url }: BucketWords, { status }: BucketAnswer): BucketFault {
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
      hint: 'Run parley publish again later; it continues with what was published. Readers still see the last publication.',
    }
  return {
    code: 'publish-refused',
    problem: `The S3 API at ${url} refuses a request for ${name}`,
    hint: 'Check publish.s3_endpoint, publish.s3_region and publish.s3_path_style.',
  }
}

/** For an answer with a 2xx that S3 would not give. */
export function noBucketError({ url }: BucketWords): StopError {
  return new StopError(`The answer of ${url} is not that of an S3 API`, {
    code: 'publish-no-api',
    hint: 'Check publish.s3_endpoint. A web console has another port than the API.',
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}
