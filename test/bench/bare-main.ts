import { writeBare } from './bare-loop.ts'

/** Runs the bare loop in a separate process. Arguments: the finished warehouse, the file to write. */
const [finished = '', path = ''] = process.argv.slice(2)
process.stdout.write(JSON.stringify(writeBare(finished, path)))
