/**
 * The built simulator in a process of its own: options as JSON in the first argument, one line of JSON once it
 * listens. Built, since translating its sources takes longer than all else that it does in most tests.
 */
const { startSimulator } = await import(new URL('../../dist/simulator/server.js', import.meta.url).href)
const options = JSON.parse(process.argv[2] ?? '{}')
const simulator = await startSimulator({ ...options, control: true })
process.stdout.write(
  `${JSON.stringify({ url: simulator.url, apiKey: simulator.apiKey, workspaceId: simulator.workspaceId })}\n`,
)
// Whoever started it is gone when the input ends, so that no simulator is left behind.
process.stdin.resume().on('end', () => process.exit(0))
