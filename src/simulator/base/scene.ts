/** The seed, sizes and clock that all parts of the made-up workspace share. */
export interface Scene {
  seed: number
  /** The made-up history runs from here to `end`, in microseconds. */
  start: number
  end: number
  sizes: Sizes
  workspaceId: string
  /** No hostile names and values, such as names that look like SQL and values that fit no type. */
  isTidy: boolean
  /**
   * Has what makes questions about real workspaces hard, such as several currencies, people with two addresses and
   * deleted stages. `test/documents/demo-traps.ts` lists all of it.
   */
  isRealistic: boolean
  /** Microseconds by the service's clock, which starts at `end`. */
  now(): number
}

/** The number of items of each kind; some of them are not published. */
export interface Sizes {
  messages: number
  meetings: number
  deals: number
  companies: number
  contacts: number
  members: number
  teams: number
  collections: number
  playbooks: number
  /** Records of each custom object. */
  customRecords: number
  accessLogs: number
  /** Speaker turns in the longest transcripts. */
  transcriptTurns: number
}

/** Keeps the draws of the parts apart. The distances leave room for several draws each. */
export const SALT = {
  member: 1_000,
  team: 2_000,
  company: 3_000,
  contact: 4_000,
  deal: 5_000,
  record: 6_000,
  thread: 7_000,
  message: 8_000,
  mail: 9_000,
  meeting: 10_000,
  transcript: 11_000,
  playbook: 12_000,
  result: 13_000,
  collection: 14_000,
  activity: 15_000,
  accessLog: 16_000,
  change: 17_000,
  fault: 18_000,
  object: 20_000,
} as const

/** The instant, in whole microseconds, at the fraction `part` (0 to 1) of the span between `from` and `scene.end`. */
export function spread(scene: Scene, part: number, from: number = scene.start): number {
  return Math.floor(from + part * (scene.end - from))
}

export const quote = (text: string): string => JSON.stringify(text)
export const quoteOrNull = (text: string | null | undefined): string =>
  text == null ? 'null' : JSON.stringify(text)
