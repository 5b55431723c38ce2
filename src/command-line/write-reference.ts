import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { INSTALLATION } from '../base/installation.ts'
import { createProgram } from './commands.ts'
import { manual } from './manual.ts'
import { bashScript, fishScript, zshScript } from './shell-scripts.ts'

/** A program for the build: writes the manual and the shells' scripts, from the texts of `--help`. */
const folder = join(INSTALLATION, 'dist', 'reference')
const program = await createProgram({
  version: '',
  isNeeded: () => true,
  write: () => undefined,
  writeError: () => undefined,
  act: async () => undefined,
})
mkdirSync(folder, { recursive: true })
const files = {
  'parley.1': manual(program),
  'parley.bash': bashScript(program),
  _parley: zshScript(program),
  'parley.fish': fishScript(program),
}
for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
