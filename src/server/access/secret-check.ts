import { createHash, timingSafeEqual } from 'node:crypto'

/** The returned function says whether a text is the secret. The time that it takes reveals nothing about the secret. */
export function createSecretCheck(secret: string): (given: string | undefined) => boolean {
  const wanted = digest(secret)
  return given => timingSafeEqual(digest(given ?? ''), wanted)
}

/** Digests have one length, so that the comparison does not reveal the secret's length. */
const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
