export interface EngineOptions {
  /** Only records with an event time since this instant are requested. */
  since: string | null
  intervalScale: number
  accessLogEndParameter: string
  words: boolean
}
