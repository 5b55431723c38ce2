import { once } from 'node:events'
import avro, { type Type } from 'avsc'

/** Avro files, in which Iceberg keeps the lists of its files. Only this file loads avsc. */

/** A schema with attributes, such as `field-id`, that the types of avsc do not know. */
export type AvroSchema = string | readonly AvroSchema[] | { type: AvroSchema; [attribute: string]: unknown }

/** @param metadata strings that readers find in the header of the file */
export async function encodeAvroFile(
  schema: AvroSchema,
  records: readonly unknown[],
  metadata: Readonly<Record<string, string>>,
): Promise<Buffer> {
  const text = JSON.stringify(schema)
  // From the type, the library would write a schema without its attributes.
  const header = Object.entries({ ...metadata, 'avro.schema': text })
  const bytes = Object.fromEntries(header.map(([key, value]) => [key, Buffer.from(value, 'utf8')]))
  // By default, the library writes nothing at all when there are no records.
  const options = { codec: 'null', metadata: bytes, writeHeader: 'always' as const }
  const encoder = new avro.streams.BlockEncoder(typeOf(text), options)
  const parts: Buffer[] = []
  encoder.on('data', (part: Buffer) => parts.push(part))
  const ended = once(encoder, 'end')
  for (const record of records) encoder.write(record)
  encoder.end()
  await ended
  return Buffer.concat(parts)
}

/** Decodes the records of a file by the schema in its header. If the file is incomplete, records may be missing. */
export async function decodeAvroFile<Decoded>(bytes: Buffer): Promise<Decoded[]> {
  const decoder = new avro.streams.BlockDecoder({ parseHook: schema => typeOf(JSON.stringify(schema)) })
  const records: Decoded[] = []
  decoder.on('data', (record: Decoded) => records.push(record))
  const ended = once(decoder, 'end')
  decoder.end(bytes)
  await ended
  return records
}

/**
 * The types by the text of their schema. The files of all tables have a handful of schemas, and compiling one takes
 * milliseconds.
 */
const types = new Map<string, Type>()

function typeOf(schema: string): Type {
  const known = types.get(schema)
  if (known !== undefined) return known
  const type = avro.Type.forSchema(JSON.parse(schema))
  types.set(schema, type)
  return type
}
