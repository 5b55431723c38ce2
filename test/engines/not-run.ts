import { spawnSync } from 'node:child_process'
import { debianCeph } from './ceph.ts'

const SPARK = new URL('spark.py', import.meta.url).pathname

/** Says before the tests which engine will not be tried, and what is missing for it. */
export function setup(): void {
  const missing = missingForSpark()
  if (missing !== undefined) process.stdout.write(`Not run: Spark: ${missing}\n`)
  const ceph = debianCeph()
  if (typeof ceph === 'string') process.stdout.write(`Not run: servers of Debian: ${ceph}\n`)
}

/** Undefined when Spark can run. */
export function missingForSpark(): string | undefined {
  const { status, stdout, error } = spawnSync('python3', [SPARK, '--check'], { encoding: 'utf8' })
  if (error) return 'python3 is missing'
  return status === 0 ? undefined : stdout.trim()
}
