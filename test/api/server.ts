import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo, Server } from 'node:net'
import { onTestFinished } from 'vitest'

export interface TestServer {
  baseUrl: string
  /** Every request received so far. */
  received: IncomingMessage[]
}

/** A real HTTP server on a free port, closed with all its connections when the test ends. */
export async function serve(listener: RequestListener): Promise<TestServer> {
  const received: IncomingMessage[] = []
  const server = createServer((request, response) => {
    received.push(request)
    listener(request, response)
  })
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { baseUrl: `http://127.0.0.1:${await listen(server)}`, received }
}

/** Listens on a free port of this machine and returns the port. */
export async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}
