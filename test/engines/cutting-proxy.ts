import { createServer, request } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { pipeline } from 'node:stream'

/** An HTTP proxy in front of a server that cuts the connection of its client at a chosen request, and then of all. */
export interface CuttingProxy {
  /** Such as `127.0.0.1:8123`. */
  host: string
  /** Requests since the last `arm`. */
  count(): number
  /**
   * From now on, `requests` requests pass. The next one reaches the server or not, and its answer does not come back.
   * @param cut called before the cut, such as to kill the server
   */
  arm(requests: number, options?: { reaches: boolean; cut?: () => Promise<void> }): void
  /** From now on, `requests` requests pass. The next one waits until this is done, once. */
  before(requests: number, work: () => Promise<void>): void
  close(): Promise<void>
}

export async function startProxy(target: string): Promise<CuttingProxy> {
  let left = Number.POSITIVE_INFINITY
  let count = 0
  let last = { reaches: false, cut: async () => {} }
  let cutEnded = () => {}
  let isCut: Promise<void> = Promise.resolve()
  const cut = async (socket: Socket) => {
    await last.cut()
    cutEnded()
    socket.destroy()
  }
  let waiting: { requests: number; work: () => Promise<void> } | undefined
  const server = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk)
    const body = Buffer.concat(chunks)
    count += 1
    left -= 1
    if (waiting && waiting.requests-- === 0) {
      const { work } = waiting
      waiting = undefined
      await work()
    }
    // The client must not give up because of another request while the server still answers.
    if (left < -1) return void isCut.then(() => incoming.socket.destroy())
    const isLast = left === -1
    if (isLast && !last.reaches) return cut(incoming.socket)
    const forwarded = request(
      `http://${target}${incoming.url}`,
      { method: incoming.method, headers: { ...incoming.headers, 'content-length': body.length } },
      async answer => {
        if (isLast) {
          answer.resume()
          answer.on('close', () => cut(incoming.socket))
          return
        }
        outgoing.writeHead(answer.statusCode ?? 500, answer.headers)
        pipeline(answer, outgoing, () => undefined)
      },
    )
    forwarded.removeHeader('transfer-encoding')
    forwarded.on('error', () => incoming.socket.destroy())
    forwarded.end(body)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    count: () => count,
    arm(requests, options = { reaches: false }) {
      left = requests
      count = 0
      isCut = new Promise(resolve => {
        cutEnded = resolve
      })
      last = { reaches: options.reaches, cut: options.cut ?? (async () => {}) }
    },
    before(requests, work) {
      waiting = { requests, work }
    },
    close: () =>
      new Promise<void>(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
