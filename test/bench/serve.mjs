/**
 * The built simulator in a process of its own: its options as JSON in the first argument, and in the second how long
 * ago, in milliseconds, its clock began, which it reads for the first time then.
 */
const { systemClock } = await import(new URL('../../dist/clock.js', import.meta.url).href)
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
// Whoever started it is gone when the input ends.
process.stdin.resume().on('end', () => process.exit(0))
