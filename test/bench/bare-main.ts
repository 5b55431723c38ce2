import { writeBare } from './bare-loop.ts'

/** The bare loop in a process of its own: the finished warehouse, then the file to write. */
const [finished = '', path = ''] = process.argv.slice(2)
process.stdout.write(JSON.stringify(writeBare(finished, path)))
