import fs from 'node:fs'
import promises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'

/** Preloaded into the built program. Records each path of which Node, and not SQLite, opens a descriptor. */

const { writeSync } = fs
const notes = fs.openSync(process.env.OPENED, 'a')
const note = path => writeSync(notes, `${path}\n`)

const watch = (owner, names) => {
  for (const name of names) {
    const original = owner[name]
    owner[name] = function watched(path, ...rest) {
      // The argument may be a descriptor that is already open.
      if (typeof path !== 'number') note(path)
      if (/^(copyFile|cp)/.test(name)) note(rest[0])
      return original.call(this, path, ...rest)
    }
  }
}

const NAMES = ['open', 'readFile', 'writeFile', 'appendFile', 'copyFile', 'cp', 'truncate']

watch(
  promises,
  NAMES.filter(name => name in promises),
)
watch(fs, [...NAMES, ...NAMES.map(name => `${name}Sync`), 'createReadStream', 'createWriteStream'])
syncBuiltinESMExports()
