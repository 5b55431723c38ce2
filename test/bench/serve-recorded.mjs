/**
 * The built simulator in a separate process that also records when requests arrived and how they were answered, in
 * bins of a fixed length so that the record stays small. Arguments, as JSON: the simulator's options, and for how many
 * ms an accepted request is held before it is answered (the simulator's own latency comes before it accepts one). It
 * writes a line when it listens, and one with the record when its input ends.
 */
import { subscribe } from 'node:diagnostics_channel'
import { monitorEventLoopDelay } from 'node:perf_hooks'

const { startSimulator } = await import(new URL('../../dist/simulator/server.js', import.meta.url).href)
const options = JSON.parse(process.argv[2])
const holdMs = Number(process.argv[3])

const BIN_MS = 100
const LOOP_RESOLUTION_MS = 50
const bins = []
const changes = []
const loopDelay = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS })
loopDelay.enable()

function holdBack(response) {
  const end = response.end.bind(response)
  response.end = (...given) => {
    if (response.statusCode === 429) return end(...given)
    setTimeout(end, holdMs, ...given)
    return response
  }
}

/** The time of arrival. Without latency the simulator accepts the request at that time. */
function record(response) {
  const at = performance.now()
  response.once('close', () => {
    const number = Math.floor(at / BIN_MS)
    while (bins.length <= number) bins.push([0, 0, 0])
    const bin = bins[number]
    bin[response.statusCode === 429 ? 1 : 0] += 1
    if (response.statusCode !== 429) bin[2] += performance.now() - at
  })
}

subscribe('http.server.request.start', ({ request, response }) => {
  if (request.url === '/_simulator/limit') changes.push(performance.now())
  if (request.url.startsWith('/_simulator/')) return
  if (holdMs > 0) holdBack(response)
  record(response)
})

const say = line => new Promise(resolve => process.stdout.write(`${JSON.stringify(line)}\n`, resolve))
const { url, apiKey, workspaceId } = await startSimulator({ ...options, control: true })
await say({ url, apiKey, workspaceId })
process.stdin.resume().on('end', async () => {
  const lateMs = Math.max(0, loopDelay.percentile(99) / 1e6 - LOOP_RESOLUTION_MS)
  await say({ binMs: BIN_MS, bins, changes, endedMs: performance.now(), lateMs })
  process.exit(0)
})
