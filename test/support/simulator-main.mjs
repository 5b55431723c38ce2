/**
 * The built simulator in a separate process: options as JSON in the first argument, one line of JSON once it listens.
 * It is built, since compiling its sources would take longer than most tests.
 */
const { startSimulator } = await import(new URL('../../dist/simulator/server.js', import.meta.url).href)
const options = JSON.parse(process.argv[2] ?? '{}')
const simulator = await startSimulator({ ...options, control: true })
process.stdout.write(
  `${JSON.stringify({ url: simulator.url, apiKey: simulator.apiKey, workspaceId: simulator.workspaceId })}\n`,
)
// The input ends when the parent has ended, even if it was killed.
process.stdin.resume().on('end', () => process.exit(0))
