import { mix } from '../base/random.ts'

/** The answer of an operation, before faults and compression. */
export interface Answer {
  status: number
  /** JSON text. */
  body: string
}

/** What an operation throws to answer with an error. */
export class OperationRefusal extends Error {
  readonly answer: Answer

  constructor(answer: Answer) {
    super(`answered ${answer.status}`)
    this.answer = answer
  }
}

const NAMES: Record<number, string> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
}

/** The error body of v1, and of v2 for every status but 400. */
export function generalError(status: number, message: string): Answer {
  const error = NAMES[status]
  return {
    status,
    body: JSON.stringify({ statusCode: status, message, ...(error !== message && { error }) }),
  }
}

/** The error body of v2 for status 400. */
export function v2BadRequest(message: string): Answer {
  let salt = 0
  for (const letter of message) salt = (Math.imul(salt, 31) + (letter.codePointAt(0) ?? 0)) >>> 0
  const requestId = `req_${mix(1, 2, salt).toString(16).padStart(8, '0')}`
  return {
    status: 400,
    body: JSON.stringify({ error: { code: 'invalid_request', message, request_id: requestId } }),
  }
}

export const notFound = (message = 'Not Found'): OperationRefusal =>
  new OperationRefusal(generalError(404, message))
export const forbidden = (): OperationRefusal => new OperationRefusal(generalError(403, 'Forbidden'))
