import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Argument } from 'commander'
import { EXIT_STATUS } from '../base/errors.ts'
import { INSTALLATION, readInstalled } from '../base/installation.ts'
import type { CommandDefinition } from './base/command.ts'

/** The shells, each with the file that the build writes for it (`command-line/write-reference.ts`). */
const FILES: Readonly<Record<string, string>> = { bash: 'parley.bash', zsh: '_parley', fish: 'parley.fish' }

export const completionCommand: CommandDefinition = {
  description:
    'Prints a script for a shell. With it the Tab key completes commands, options, files and the names of resources and tables.',
  arguments: [new Argument('<shell>', 'the shell').choices(Object.keys(FILES))],
  settings: [],
  options: [],
  examples: [
    ['parley completion bash > /etc/bash_completion.d/parley', 'for bash, from its next start on'],
    [
      'parley completion zsh > /usr/local/share/zsh/site-functions/_parley',
      'for zsh, from its next start on',
    ],
    ['parley completion fish > ~/.config/fish/completions/parley.fish', 'for fish'],
  ],
  async run({ stdout }, { args: [shell = ''] }) {
    const path = join(INSTALLATION, 'dist/reference', FILES[shell] ?? '')
    stdout.write(readInstalled(path, () => readFileSync(path, 'utf8')))
    return EXIT_STATUS.done
  },
}
