import { readdirSync, writeFileSync } from 'node:fs'
import { RESOURCE_NAMES } from '../src/declare/resource-names.ts'

/**
 * `npm run schema` begins with this: it lists the files of `src/resources` in `src/catalog`, so that a new resource is a
 * single file. Known resources keep their order, which analysts see; new ones follow in the order of their names.
 */

const HEAD = '/** Written by `npm run schema` from the files in `src/resources`. */'

const fileNames = readdirSync(new URL('../src/resources/', import.meta.url)).sort()
const found = fileNames.map(name => name.replace(/\.ts$/, '').replaceAll('-', '_'))
const known = RESOURCE_NAMES.filter(name => found.includes(name))
const names = [...known, ...found.filter(name => !known.some(one => one === name))]

const declarationOf = (name: string): string =>
  `${name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())}Resource`
const fileOf = (name: string): string => `../resources/${name.replaceAll('_', '-')}.ts`

const imports = [...names].sort().map(name => `import { ${declarationOf(name)} } from '${fileOf(name)}'`)

const namesFile = `${HEAD}
export const RESOURCE_NAMES = [
${names.map(name => `  '${name}',`).join('\n')}
] as const

export type ResourceName = (typeof RESOURCE_NAMES)[number]
`

const declarationsFile = `import type { Resource } from '../declare/resource.ts'
${imports.join('\n')}

${HEAD}
export const DECLARATIONS: readonly Resource[] = [
${names.map(name => `  ${declarationOf(name)},`).join('\n')}
]
`

writeFileSync(new URL('../src/declare/resource-names.ts', import.meta.url), namesFile)
writeFileSync(new URL('../src/catalog/declarations.ts', import.meta.url), declarationsFile)
process.stdout.write('Wrote the lists of resources in src/catalog\n')
