import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import type { HookPayload } from '../../src/hooks/call.ts'
import { listenUntilTestEnds } from '../support/http-server.ts'

export interface ReceivedCall {
  method: string | undefined
  url: string | undefined
  type: string | undefined
  payload: HookPayload
}

/** A real webhook server. */
export interface Receiver {
  /** An address with a token, as those of chat services have. */
  url: string
  calls: readonly ReceivedCall[]
}

export const TOKEN = 'T0KEN-of-the-webhook'

type Answer = (response: ServerResponse, number: number) => void

/** @param answer answers the n-th request, from 1; default: with 200 */
export async function receiver(
  answer: Answer = response => response.writeHead(200).end('ok'),
): Promise<Receiver> {
  const calls: ReceivedCall[] = []
  const receive = async (request: IncomingMessage, response: ServerResponse) => {
    const { method, url, headers } = request
    const payload = (await json(request)) as HookPayload
    calls.push({ method, url, type: headers['content-type'], payload })
    answer(response, calls.length)
  }
  const server = createServer((request, response) => void receive(request, response))
  return { url: `${await listenUntilTestEnds(server)}/services/${TOKEN}`, calls }
}
