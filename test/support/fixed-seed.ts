import fc from 'fast-check'
import { runs } from './effort.ts'

/**
 * The quick suite draws the same cases in every run, so that it fails only because of a change. `npm run test:long`
 * runs the properties with other cases each time.
 */
fc.configureGlobal({ seed: 1_122, numRuns: runs(100) })
