/** Where the objects of a bucket are. Pure. */

export interface BucketPlace {
  bucket: string
  /** Without slashes at its ends; empty for the whole bucket. */
  prefix: string
}

export interface BucketEndpoint {
  /** The address of the API without the bucket; undefined: as the client of AWS finds it. */
  endpoint: string | undefined
  region: string
  /** Undefined: as the endpoint needs it. */
  pathStyle: boolean | undefined
}

/** Undefined when the text does not have the form `s3://bucket/prefix`. */
export function parseBucketPlace(text: string): BucketPlace | undefined {
  const [, bucket, prefix = ''] = /^s3:\/\/([a-z\d][a-z\d.-]{1,61}[a-z\d])(?:\/+(.*?))?\/*$/.exec(text) ?? []
  const isUsable = prefix === '' || prefix.split('/').every(isUsablePart)
  return bucket === undefined || bucket.includes('..') || !isUsable ? undefined : { bucket, prefix }
}

/** URLs drop parts of dots, and readers of Iceberg take `?` and `#` for the end of a path. */
const isUsablePart = (part: string): boolean => !/^\.{0,2}$|[?#\\\p{C}]/u.test(part)
