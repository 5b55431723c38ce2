/**
 * The built simulator in a separate process. Arguments: its options as JSON, and how many milliseconds ago its history
 * ends. Only the first reading of its clock is set back by that time.
 */
const { systemClock } = await import(new URL('../../dist/base/clock.js', import.meta.url).href)
const { startSimulator } = await import(new URL('../../dist/simulator/server.js', import.meta.url).href)
const agoMs = Number(process.argv[3] ?? 0)
let hasBegun = false
const clock = {
  ...systemClock(),
  now() {
    const ago = hasBegun ? 0 : agoMs
    hasBegun = true
    return Date.now() - ago
  },
}
const options = { ...JSON.parse(process.argv[2]), control: true, clock }
const { url, apiKey, workspaceId } = await startSimulator(options)
process.stdout.write(`${JSON.stringify({ url, apiKey, workspaceId })}\n`)
// The end of the input means that the process that started this one has ended.
process.stdin.resume().on('end', () => process.exit(0))
