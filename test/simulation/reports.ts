import { isDeepStrictEqual } from 'node:util'
import { DICTIONARY } from '../../src/dictionary/dictionary.ts'
import { runDataTests } from '../../src/store/data-tests/run.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'
import { derivedContent, type Followed, forgetDerived, withFollowedCopy } from '../support/derived-content.ts'

/**
 * What is wrong with the tables for reports of a warehouse, once they have followed its last changes: rows that a full build
 * derives in another way, and tests of the content that are not met.
 */
export const wrongReports = (of: Followed): Promise<string[]> =>
  withFollowedCopy(of, async (db, update) => {
    const followed = derivedContent(db)
    const unmet = unmetTests(db)
    forgetDerived(db)
    await update()
    const built = derivedContent(db)
    const differing = Object.keys(built).filter(name => !isDeepStrictEqual(built[name], followed[name]))
    return [...differing.map(name => `${name} for reports differ from those of a full build`), ...unmet]
  })

const unmetTests = (db: Sqlite): string[] =>
  [...runDataTests(db, DICTIONARY)].flatMap(result =>
    'missing' in result || result.rows === 0 || !result.test.isPromised
      ? []
      : [
          `${result.test.table} (${result.test.columns.join(', ')}): ${result.rows} rows do not meet a test of ${result.test.kind}`,
        ],
  )
