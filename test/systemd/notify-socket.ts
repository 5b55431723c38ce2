import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'

/** A datagram socket like systemd's, in a separate process, since Node has no such sockets. */
export interface NotifySocket {
  path: string
  /** Resolves to the lines of the next message, in the order in which they came; fails when none comes any more. */
  next(): Promise<string[]>
  close(): Promise<void>
}

/**
 * systemd-notify hands over one end of a pipe with a second message, BARRIER=1, and waits until it is closed here:
 * so it knows that what it said before has been read.
 */
const RECEIVER = `
import array, json, os, socket, sys
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind(sys.argv[1])
print('"listening"', flush=True)
while True:
    message, extras, _, _ = receiver.recvmsg(65536, socket.CMSG_SPACE(64))
    lines = message.decode().split('\\n')
    if lines != ['BARRIER=1']:
        print(json.dumps(lines), flush=True)
    for level, kind, data in extras:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            for descriptor in array.array('i', data):
                os.close(descriptor)
`

export async function openNotifySocket(path: string): Promise<NotifySocket> {
  const child = spawn('python3', ['-c', RECEIVER, path], { stdio: ['ignore', 'pipe', 'pipe'] })
  child.on('error', error => child.stderr.destroy(error))
  const complaints = text(child.stderr).catch(() => 'python3 is needed to run this test')
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  async function next() {
    const { value, done } = await lines.next()
    if (done) throw new Error(`nobody receives messages any more: ${await complaints}`)
    return JSON.parse(value)
  }
  await next()
  return {
    path,
    next,
    async close() {
      child.kill()
      await once(child, 'close')
    },
  }
}
