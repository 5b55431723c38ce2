/** The built simulator in a process of its own: its options as JSON in the first argument. */
const { startSimulator } = await import(new URL('../../dist/simulator/server.js', import.meta.url).href)
const { url, apiKey, workspaceId } = await startSimulator({ ...JSON.parse(process.argv[2]), control: true })
process.stdout.write(`${JSON.stringify({ url, apiKey, workspaceId })}\n`)
// Whoever started it is gone when the input ends.
process.stdin.resume().on('end', () => process.exit(0))
