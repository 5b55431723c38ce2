/** The kinds of rate limit that services have. `admit` takes ms of a monotonic clock; `rate` is per second. */

export type LimitModel = LimitRule & {
  /** How a 429 says how long to wait. Default `retry-after-seconds`. */
  hint?: 'retry-after-seconds' | 'retry-after-date' | 'none'
  /** Sends `RateLimit-Limit`, `-Remaining` and `-Reset` with every answer. */
  rateHeaders?: boolean
  /**
   * Another client of the same limit, which is not `concurrency`. It asks evenly, and a request of it that is refused is
   * served before all others. `fromMs` and `untilMs` are times of the clock of `admit`.
   */
  other?: OtherClient
}

interface OtherClient {
  perSecond: number
  fromMs: number
  untilMs: number
}

export type LimitRule =
  | { kind: 'none' }
  | { kind: 'token-bucket'; rate: number; burst: number }
  | { kind: 'fixed-window'; count: number; windowMs: number }
  | { kind: 'sliding-window'; count: number; windowMs: number }
  | { kind: 'concurrency'; max: number }

export interface Admission {
  isAllowed: boolean
  limit: number
  remaining: number
  /** Milliseconds until a request may be allowed again; 0 when one is allowed now. */
  waitMs: number
}

export interface Limiter {
  admit(now: number): Admission
  /** The caller calls it once for each admitted request, after its answer. */
  release(): void
}

export function createLimiter({ other, ...rule }: LimitModel): Limiter {
  const limiter = limiterOf(rule)
  return other === undefined ? limiter : shared(limiter, other)
}

function limiterOf(rule: LimitRule): Limiter {
  switch (rule.kind) {
    case 'none':
      return {
        admit: () => ({ isAllowed: true, limit: 0, remaining: 0, waitMs: 0 }),
        release: () => undefined,
      }
    case 'token-bucket':
      return tokenBucket(rule.rate, rule.burst)
    case 'fixed-window':
      return fixedWindow(rule.count, rule.windowMs)
    case 'sliding-window':
      return slidingWindow(rule.count, rule.windowMs)
    case 'concurrency':
      return concurrency(rule.max)
  }
}

function tokenBucket(rate: number, burst: number): Limiter {
  let tokens = burst
  let filledAt: number | undefined
  return {
    admit: now => {
      tokens = Math.min(burst, tokens + ((now - (filledAt ?? now)) / 1_000) * rate)
      filledAt = now
      const isAllowed = tokens >= 1
      if (isAllowed) tokens--
      return {
        isAllowed,
        limit: burst,
        remaining: Math.floor(tokens),
        waitMs: tokens >= 1 ? 0 : ((1 - tokens) / rate) * 1_000,
      }
    },
    release: () => undefined,
  }
}

function fixedWindow(count: number, windowMs: number): Limiter {
  let windowStart = Number.NEGATIVE_INFINITY
  let used = 0
  return {
    admit: now => {
      if (now - windowStart >= windowMs) {
        windowStart = Math.floor(now / windowMs) * windowMs
        used = 0
      }
      const isAllowed = used < count
      if (isAllowed) used++
      return {
        isAllowed,
        limit: count,
        remaining: count - used,
        waitMs: used < count ? 0 : windowStart + windowMs - now,
      }
    },
    release: () => undefined,
  }
}

function slidingWindow(count: number, windowMs: number): Limiter {
  const recent: number[] = []
  return {
    admit: now => {
      while (recent[0] !== undefined && now - recent[0] >= windowMs) recent.shift()
      const isAllowed = recent.length < count
      if (isAllowed) recent.push(now)
      const remaining = count - recent.length
      return {
        isAllowed,
        limit: count,
        remaining,
        waitMs: remaining > 0 ? 0 : (recent[0] ?? now) + windowMs - now,
      }
    },
    release: () => undefined,
  }
}

function concurrency(max: number): Limiter {
  let running = 0
  return {
    admit: () => {
      const isAllowed = running < max
      if (isAllowed) running++
      return { isAllowed, limit: max, remaining: max - running, waitMs: isAllowed ? 0 : 50 }
    },
    release: () => {
      running--
    },
  }
}

function shared(limiter: Limiter, { perSecond, fromMs, untilMs }: OtherClient): Limiter {
  let nextAt = fromMs
  let lastAt = Number.NEGATIVE_INFINITY
  const isAllowed = (at: number) => {
    lastAt = at
    return limiter.admit(at).isAllowed
  }
  return {
    ...limiter,
    admit: now => {
      for (; nextAt <= now && nextAt < untilMs; nextAt += 1000 / perSecond)
        if (!isAllowed(Math.max(nextAt, lastAt)) && !isAllowed(now)) break
      lastAt = now
      return limiter.admit(now)
    },
  }
}

/** The headers of an answer: rate headers when the model sends them, and the hint for a refusal. */
export function limitHeaders(model: LimitModel, admission: Admission, nowMs: number): Record<string, string> {
  const headers: Record<string, string> = {}
  const seconds = String(Math.max(0, Math.ceil(admission.waitMs / 1_000)))
  if (model.rateHeaders) {
    headers['RateLimit-Limit'] = String(admission.limit)
    headers['RateLimit-Remaining'] = String(admission.remaining)
    headers['RateLimit-Reset'] = seconds
  }
  const hint = model.hint ?? 'retry-after-seconds'
  if (!admission.isAllowed && hint === 'retry-after-seconds') headers['Retry-After'] = seconds
  if (!admission.isAllowed && hint === 'retry-after-date') {
    headers['Retry-After'] = new Date(Math.ceil((nowMs + admission.waitMs) / 1_000) * 1_000).toUTCString()
  }
  return headers
}
