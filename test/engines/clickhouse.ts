import { type Engine, startEngine } from './engine-process.ts'

const READER = new URL('clickhouse-reader.mjs', import.meta.url).pathname

/** It reads only files below its current folder. */
export const startClickHouse = (): Engine =>
  startEngine({ name: 'ClickHouse', command: process.execPath, args: [READER], cwd: '/' })

export const literal = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`

export const identifier = (name: string): string =>
  `\`${name.replaceAll('\\', '\\\\').replaceAll('`', '\\`')}\``
