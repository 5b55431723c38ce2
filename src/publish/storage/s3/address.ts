/** Where the objects of a bucket are. Pure. */

export interface BucketPlace {
  bucket: string
  /** Without slashes at its ends; empty for the whole bucket. */
  prefix: string
}

export interface BucketEndpoint {
  /** The address of the API without the bucket; undefined for AWS. */
  endpoint: string | undefined
  region: string
  /** Undefined: as the endpoint needs it. */
  pathStyle: boolean | undefined
}

/** The URL of a bucket, to which `/key` is appended. */
export function bucketUrl({ endpoint, region, pathStyle }: BucketEndpoint, bucket: string): string {
  const base = endpoint ?? `https://s3.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`
  // The certificate of AWS covers host names with one label before the domain, so no bucket with dots.
  if (pathStyle ?? (endpoint !== undefined || bucket.includes('.'))) return `${base}/${bucket}`
  return base.replace('://', `://${bucket}.`)
}

/** As SigV4 wants it: everything but unreserved characters is encoded. */
export function encodedText(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    character => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

export const encodedKey = (key: string): string => key.split('/').map(encodedText).join('/')

/** Undefined when the text does not have the form `s3://bucket/prefix`. */
export function parseBucketPlace(text: string): BucketPlace | undefined {
  const [, bucket, prefix = ''] = /^s3:\/\/([a-z\d][a-z\d.-]{1,61}[a-z\d])(?:\/+(.*?))?\/*$/.exec(text) ?? []
  const isUsable = prefix === '' || prefix.split('/').every(isUsablePart)
  return bucket === undefined || bucket.includes('..') || !isUsable ? undefined : { bucket, prefix }
}

/** URLs drop parts of dots, and readers of Iceberg take `?` and `#` for the end of a path. */
const isUsablePart = (part: string): boolean => !/^\.{0,2}$|[?#\\\p{C}]/u.test(part)
