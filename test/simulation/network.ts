import type { AsyncLocalStorage } from 'node:async_hooks'
import type { Server } from 'node:http'
import net, { type Socket } from 'node:net'
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

export interface Network<T> {
  /** Resets the connections of a side that is no more. */
  drop(side: T): void
  /** Takes the place of `net.connect` until `close`. */
  close(): void
}

/**
 * @param servers by host and port
 * @param outside the context of the servers
 */
export function createNetwork<T>(
  context: Context<T>,
  outside: T,
  servers: Readonly<Record<string, Server>>,
): Network<T> {
  const { connect } = net
  const open = new Map<End<T>, T>()
  const connectWithin = ({ host, port }: { host: string; port: number | string }): Socket => {
    const side = context.getStore() as T
    const mine = new End(context, side)
    open.set(mine, side)
    mine.once('close', () => open.delete(mine))
    const server = servers[`${host}:${port}`]
    mine.later(() => {
      if (mine.destroyed) return
      if (server === undefined) {
        mine.destroy(Object.assign(new Error(`connect ECONNREFUSED ${host}`), { code: 'ECONNREFUSED' }))
        return
      }
      const theirs = new End(context, outside)
      Object.assign(mine, { peer: theirs, connecting: false })
      Object.assign(theirs, { peer: mine, connecting: false })
      context.run(outside, () => server.emit('connection', theirs))
      mine.emit('connect')
    })
    return mine as unknown as Socket
  }
  net.connect = connectWithin as typeof net.connect
  return {
    drop(side) {
      for (const [end, of] of open) {
        if (of !== side) continue
        open.delete(end)
        end.reset()
      }
    },
    close() {
      net.connect = connect
    },
  }
}
