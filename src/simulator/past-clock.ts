/**
 * Preloaded with `--import`, sets the clock of a process back by as many milliseconds as the query of this module's URL
 * says. So `parley demo` runs a backfill on a day of the simulated workspace that is in the past.
 */

const now = Date.now
const ms = Number(new URL(import.meta.url).searchParams.get('ms'))

Date.now = () => now() - ms
