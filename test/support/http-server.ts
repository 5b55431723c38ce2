import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/**
 * Lets a server listen on a free port of this machine, and closes it with all its connections when the test ends.
 * @param atEnd the one of the test's context, in tests that run at the same time
 * @returns its address, without a slash at the end
 */
export async function listenUntilTestEnds(
  server: Server,
  atEnd: (close: () => Promise<void>) => void = onTestFinished,
): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(async () => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
