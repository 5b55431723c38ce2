import type { AsyncLocalStorage } from 'node:async_hooks'
import net, { type Server, type Socket } from 'node:net'
import { Duplex } from 'node:stream'

/** Connections between programs inside this process. Each end runs in the context of the program that has it. */

/** One way. */
const LATENCY_MS = 8

type Context<T> = AsyncLocalStorage<T>

/**
 * One end of a connection. What is written arrives at the other end after the latency, in order. A write completes with its
 * arrival, so that a server does not write an endless body without a reader.
 */
class End<T> extends Duplex {
  peer: End<T> | undefined
  connecting = true
  readonly #context: Context<T>
  readonly #side: T

  constructor(context: Context<T>, side: T) {
    super()
    this.#context = context
    this.#side = side
  }

  /** Calls on this side after the latency. */
  later(work: () => void): void {
    this.#context.run(this.#side, () => setTimeout(work, LATENCY_MS))
  }

  override _read(): void {}

  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    const { peer } = this
    peer?.later(() => {
      if (!peer.readableEnded && !peer.destroyed) peer.push(chunk)
      this.#context.run(this.#side, done)
    })
  }

  override _final(done: () => void): void {
    this.leave()
    done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.leave()
    done(error)
  }

  resetAndDestroy(): this {
    this.reset()
    return this.destroy()
  }

  /** The other end fails, as that of a TCP connection that is reset. */
  reset(): void {
    const { peer } = this
    this.peer = undefined
    peer?.later(() => peer.destroy(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })))
  }

  /** The other end sees the end of the connection, and this one nothing more. */
  leave(): void {
    const { peer } = this
    this.peer = undefined
    peer?.later(() => {
      if (!peer.destroyed && !peer.readableEnded) peer.push(null)
    })
  }

  setKeepAlive(): this {
    return this
  }
  setNoDelay(): this {
    return this
  }
  setTimeout(): this {
    return this
  }
  ref(): this {
    return this
  }
  unref(): this {
    return this
  }
}

/** Takes the place of `net.connect` and of `listen` of each server until `close`. */
export interface Network<T> {
  /** Whether the side has a server. */
  listens(side: T): boolean
  /** Resets the connections of a side that is no more, and closes its servers. */
  drop(side: T): void
  close(): void
}

/**
 * @param servers by host and port
 * @param outside the context of these servers
 */
export function createNetwork<T>(
  context: Context<T>,
  outside: T,
  servers: Readonly<Record<string, Server>>,
): Network<T> {
  const { connect } = net
  const { listen, address, close } = net.Server.prototype
  const listening = new Map(
    Object.entries(servers).map(([at, server]) => [at, { server, side: outside }] as const),
  )
  const placeOf = (server: Server) => [...listening].find(([, one]) => one.server === server)?.[0]
  const open = new Map<End<T>, T>()
  const end = (side: T) => {
    const made = new End(context, side)
    open.set(made, side)
    return made.once('close', () => open.delete(made))
  }
  const connectWithin = ({ host, port }: { host: string; port: number | string }): Socket => {
    const mine = end(context.getStore() as T)
    mine.later(() => {
      if (mine.destroyed) return
      const reached = listening.get(`${host}:${port}`)
      if (reached === undefined) {
        mine.destroy(Object.assign(new Error(`connect ECONNREFUSED ${host}`), { code: 'ECONNREFUSED' }))
        return
      }
      const { server, side } = reached
      const theirs = end(side)
      Object.assign(mine, { peer: theirs, connecting: false })
      Object.assign(theirs, { peer: mine, connecting: false })
      context.run(side, () => server.emit('connection', theirs))
      mine.emit('connect')
    })
    return mine as unknown as Socket
  }
  net.connect = connectWithin as typeof net.connect
  Object.assign(net.Server.prototype, {
    listen(this: Server, { host, port }: { host: string; port: number }) {
      listening.set(`${host}:${port}`, { server: this, side: context.getStore() as T })
      process.nextTick(() => this.emit('listening'))
      return this
    },
    address(this: Server) {
      const [host = '', port] = placeOf(this)?.split(':') ?? []
      return { address: host, family: 'IPv4', port: Number(port) }
    },
    close(this: Server, done?: () => void) {
      listening.delete(placeOf(this) ?? '')
      process.nextTick(() => {
        this.emit('close')
        done?.()
      })
      return this
    },
  })
  return {
    listens: side => [...listening.values()].some(server => server.side === side),
    drop(side) {
      for (const [at, server] of listening) if (server.side === side) listening.delete(at)
      for (const [end, of] of open) {
        if (of !== side) continue
        open.delete(end)
        end.reset()
      }
    },
    close() {
      net.connect = connect
      Object.assign(net.Server.prototype, { listen, address, close })
    },
  }
}
