import { readdirSync, readFileSync } from 'node:fs'
import { join, posix, sep } from 'node:path'
import ts from 'typescript'
import { RESOURCE_NAMES } from '../../src/declare/resource-names.ts'

export interface Import {
  /** A path from src/ for files of ours, else the package's name or `node:…`. */
  module: string
  /** Nothing is left of it in the running program. */
  typeOnly: boolean
}

export interface Source {
  /** From src/, such as `store/file/open.ts`. */
  path: string
  imports: readonly Import[]
  /** Names of the platform that the code reads, such as `process.env` or `setTimeout`, comments and texts left out. */
  uses: readonly string[]
  /** Names of the interfaces, type aliases, classes and enums that are declared anywhere in the file. */
  types: readonly string[]
  /** Its string literals that are a resource or a feed of one. */
  resources: readonly string[]
}

/** Every source file below a folder. */
export function readSources(folder: string): Source[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.ts') && !name.includes('node_modules'))
    .map(name => name.split(sep).join('/'))
    .map(path => sourceOf(path, readFileSync(join(folder, path), 'utf8')))
}

export function sourceOf(path: string, text: string): Source {
  const imports: Import[] = []
  const uses = new Set<string>()
  const types: string[] = []
  const resources: string[] = []
  const visit = (node: ts.Node): void => {
    const found = importOf(node)
    if (found !== undefined) imports.push({ module: resolved(path, found.module), typeOnly: found.typeOnly })
    const used = useOf(node)
    if (used !== undefined) uses.add(used)
    for (const name of fileFunctionsOf(node)) uses.add(name)
    if (declaresType(node)) types.push(node.name.text)
    if (ts.isStringLiteralLike(node) && isResource(node.text)) resources.push(node.text)
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile(path, text, ts.ScriptTarget.ES2023, true))
  return { path, imports, uses: [...uses], types, resources }
}

const isResource = (text: string) => RESOURCE_NAMES.some(name => text === name || text.startsWith(`${name}.`))

const declaresType = (node: ts.Node): node is ts.Node & { name: ts.Identifier } =>
  ts.isInterfaceDeclaration(node) ||
  ts.isTypeAliasDeclaration(node) ||
  ts.isEnumDeclaration(node) ||
  (ts.isClassDeclaration(node) && node.name !== undefined)

function importOf(node: ts.Node): Import | undefined {
  if (ts.isImportDeclaration(node)) {
    return literal(node.moduleSpecifier, isTypeOnly(node.importClause))
  }
  if (ts.isExportDeclaration(node)) return literal(node.moduleSpecifier, node.isTypeOnly)
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
    return literal(node.argument.literal, true)
  }
  const loads =
    ts.isCallExpression(node) &&
    (node.expression.kind === ts.SyntaxKind.ImportKeyword || node.expression.getText() === 'require')
  return loads ? literal(node.arguments[0], false) : undefined
}

/** `import { type A }` does not count: this compiler leaves `import {}` of it, which loads the module. */
const isTypeOnly = (clause: ts.ImportClause | undefined): boolean =>
  clause?.phaseModifier === ts.SyntaxKind.TypeKeyword

const literal = (node: ts.Node | undefined, typeOnly: boolean): Import | undefined =>
  node !== undefined && ts.isStringLiteralLike(node) ? { module: node.text, typeOnly } : undefined

/** What stands for itself (`setTimeout`), or is read from an object (`process.env`, `process['env']`). */
function useOf(node: ts.Node): string | undefined {
  if (isDeferredTransaction(node)) return 'a deferred transaction'
  if (hasBoundLimit(node)) return 'a bound LIMIT'
  if (writesSegments(node)) return 'a write to sync_segments'
  if (ts.isPropertyAccessExpression(node)) return `${node.expression.getText()}.${node.name.text}`
  if (ts.isElementAccessExpression(node) && ts.isStringLiteralLike(node.argumentExpression)) {
    return `${node.expression.getText()}.${node.argumentExpression.text}`
  }
  if (ts.isNewExpression(node) && (node.arguments?.length ?? 0) === 0)
    return `new ${node.expression.getText()}()`
  if (!ts.isIdentifier(node)) return undefined
  const { parent } = node
  const isProperty = ts.isPropertyAccessExpression(parent) && parent.name === node
  return isProperty || ts.isImportSpecifier(parent) ? undefined : node.text
}

const writesSegments = (node: ts.Node): boolean =>
  (ts.isStringLiteralLike(node) || ts.isTemplateExpression(node)) &&
  /\b(INTO|UPDATE|DELETE FROM) sync_segments\b/.test(node.getText())

/** `db.transaction(work)()`, in place of `db.transaction(work).immediate()`. */
function isDeferredTransaction(node: ts.Node): boolean {
  if (!ts.isCallExpression(node) || !ts.isCallExpression(node.expression)) return false
  const made = node.expression.expression
  return ts.isPropertyAccessExpression(made) && made.name.text === 'transaction'
}

/** SQL with `LIMIT ?` or `LIMIT @name`, in place of `LIMIT +?`. */
function hasBoundLimit(node: ts.Node): boolean {
  const isText =
    ts.isStringLiteralLike(node) ||
    ts.isTemplateHead(node) ||
    ts.isTemplateMiddle(node) ||
    ts.isTemplateTail(node)
  return isText && /\bLIMIT [?@:]/.test(node.text)
}

/** What an import takes of `node:fs`, such as `node:fs.openSync`; `node:fs.*` where it takes all of it. */
function fileFunctionsOf(node: ts.Node): string[] {
  const found = importOf(node)
  if (found === undefined || found.typeOnly || !/^(node:)?fs(\/|$)/.test(found.module)) return []
  const named = ts.isImportDeclaration(node) ? node.importClause?.namedBindings : undefined
  if (named === undefined || !ts.isNamedImports(named)) return [`${found.module}.*`]
  return named.elements
    .filter(({ isTypeOnly }) => !isTypeOnly)
    .map(({ propertyName, name }) => `${found.module}.${(propertyName ?? name).text}`)
}

function resolved(path: string, module: string): string {
  if (module.startsWith('.')) return posix.join(posix.dirname(path), module)
  if (module.startsWith('node:')) return module
  const [scope, name] = module.split('/')
  return module.startsWith('@') ? `${scope}/${name}` : (scope ?? module)
}
