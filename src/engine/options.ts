export interface EngineOptions {
  /** Only what happened since then is asked for. */
  since: string | null
  intervalScale: number
  accessLogEndParameter: string
  words: boolean
}
