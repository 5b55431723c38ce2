import { execFileSync, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { emptyFolder, ROOT } from '../nodes/node.ts'

/** The Tab key in real shells, with the scripts of `parley completion`. */

const cwd = emptyFolder('shells')
writeFileSync(join(cwd, 'warehouse.db'), '')
const script = (shell: string) => {
  const path = join(cwd, shell)
  writeFileSync(path, execFileSync(join(ROOT, 'dist/cli.js'), ['completion', shell]))
  return path
}

/** Each prints the last word after Tab, and the errors of the script. The line is given as `LINE`. */
const SHELLS: Readonly<Record<string, (path: string) => readonly string[]>> = {
  bash: path => [
    'bash',
    '-c',
    `source ${path}; compopt() { :; }; read -ra COMP_WORDS <<< "$LINE"; COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _parley; echo "\${COMPREPLY[@]}"`,
  ],
  fish: path => ['fish', '--no-config', '-c', `source ${path}; complete -C "$LINE" | cut -f1`],
  zsh: path => [
    'zsh',
    '-f',
    '-c',
    [
      'zmodload zsh/zpty; zpty z zsh -f -i',
      `zpty -w z 'autoload -Uz compinit; compinit -u -d ${path}-dump; source ${path}; parley() { print "WORDS"": $argv[-1] END" }; exec 2> ${path}-errors'`,
      `zpty -w z "$LINE"$'\\t'; zpty -r z said '*WORDS: * END*'`,
      '[[ $said =~ "WORDS: ([^ ]*) END" ]] && print -- $match[1]',
      `cat ${path}-errors >&2`,
    ].join('\n'),
  ],
}

describe.each(Object.entries(SHELLS))('%s', (shell, argv) => {
  const [command = '', ...args] = argv(script(shell))

  test.for([
    ['parley ba', 'backfill'],
    ['parley accept', 'accept-deletions'],
    ['parley help sea', 'search'],
    ['parley service unin', 'uninstall'],
    ['parley service install acme --base', '--base-url'],
    ['parley backfill --max-c', '--max-concurrency'],
    ['parley backfill --plan --only meeti', 'meetings'],
    ['parley backfill --crm-tables f', 'false'],
    ['parley status --database ware', 'warehouse.db'],
    ['parley status --all --che', '--check'],
    ['parley status --check --resource meeti', 'meetings'],
    ['parley resync meeti', 'meetings'],
    ['parley restore ware', 'warehouse.db'],
    ['parley resync repo', 'reports'],
    ['parley schema message_par', 'message_participants'],
    ['parley schema live_message_par', 'live_message_participants'],
    ['parley publish ver', 'verify'],
    ['parley publish --tables message_par', 'message_participants'],
    ['parley publish verify --loc', '--location'],
    ['parley completion z', 'zsh'],
    ['parley daemon --log-level de', 'debug'],
    ['parley search --kind transcript,action', 'transcript,action-item'],
    ['parley backfill --skip teams,members,playbook_r', 'teams,members,playbook_results'],
    ['parley export parquet out --tables meetings,message_par', 'meetings,message_participants'],
  ])('completes %s with %s', ([line = '', word]) => {
    const env = { ...process.env, LINE: line }
    const { stdout, stderr } = spawnSync(command, args, { cwd, env, encoding: 'utf8' })
    expect({ said: stdout.trim(), errors: stderr }).toEqual({ said: word, errors: '' })
  })
})
