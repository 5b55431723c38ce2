import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** A proxy between parley and the API that passes on every byte unchanged and sees each request first. */
export interface Tap {
  url: string
  /** Paths with their queries, in the order of arrival. */
  requests: string[]
  /** Open connections on parley's side. */
  open(): number
  /** Requests without any byte of an answer. */
  unanswered(): number
  /** Called with the number of the request, from 1, before it is passed on. */
  onRequest: (number: number) => void
  /** Called with the number of started answers, from 1, after their first bytes were passed on. */
  onAnswer: (number: number) => void
  answers(): number
  close(): Promise<void>
}

const END_OF_HEAD = '\r\n\r\n'

export async function startTap(target: string): Promise<Tap> {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  let answers = 0
  let open = 0

  const server = createServer({ noDelay: true }, near => {
    open += 1
    near.on('close', () => {
      open -= 1
    })
    const far = connect({ host: hostname, port: Number(port), noDelay: true })
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('close', () => sockets.delete(socket))
    }
    let head = ''
    let awaiting = 0
    near.on('data', chunk => {
      head += chunk.toString('latin1')
      for (let end = head.indexOf(END_OF_HEAD); end >= 0; end = head.indexOf(END_OF_HEAD)) {
        tap.requests.push(head.slice(0, head.indexOf('\r\n')).split(' ')[1] ?? '')
        head = head.slice(end + END_OF_HEAD.length)
        awaiting += 1
        tap.onRequest(tap.requests.length)
      }
      far.write(chunk)
    })
    far.on('data', chunk => {
      near.write(chunk)
      if (awaiting === 0) return
      awaiting -= 1
      answers += 1
      tap.onAnswer(answers)
    })
    // A connection that breaks on one side is broken on the other side too.
    joinEnds(near, far)
    joinEnds(far, near)
  })
  const tap: Tap = {
    url: '',
    requests: [],
    open: () => open,
    unanswered: () => tap.requests.length - answers,
    answers: () => answers,
    onRequest: () => undefined,
    onAnswer: () => undefined,
    close: async () => {
      server.close()
      for (const socket of sockets) socket.destroy()
      await once(server, 'close')
    },
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the tap has no port')
  tap.url = `http://127.0.0.1:${address.port}`
  return tap
}

function joinEnds(from: Socket, to: Socket): void {
  from.on('end', () => to.end())
  from.on('error', () => {
    // A socket that is already ending cannot be reset, and would keep its handle.
    if (to.writableEnded) to.destroy()
    else to.resetAndDestroy()
  })
  from.on('close', () => to.destroySoon())
}
