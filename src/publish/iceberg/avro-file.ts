import { once } from 'node:events'
import avro, { type Schema } from 'avsc'

/** Avro files, in which Iceberg keeps the lists of its files. Only this file loads avsc. */

/** A schema with attributes, such as `field-id`, that the types of avsc do not know. */
export type AvroSchema = string | readonly AvroSchema[] | { type: AvroSchema; [attribute: string]: unknown }

/** @param metadata strings that readers find in the header of the file */
export async function encodeAvroFile(
  schema: AvroSchema,
  records: readonly unknown[],
  metadata: Readonly<Record<string, string>>,
): Promise<Buffer> {
  const header = Object.entries(metadata).map(([key, value]) => [key, Buffer.from(value, 'utf8')] as const)
  // By default, the library writes nothing at all when there are no records.
  const options = { codec: 'null', metadata: Object.fromEntries(header), writeHeader: 'always' as const }
  const plain: Schema = JSON.parse(JSON.stringify(schema))
  const encoder = new avro.streams.BlockEncoder(plain, options)
  const parts: Buffer[] = []
  encoder.on('data', (part: Buffer) => parts.push(part))
  const ended = once(encoder, 'end')
  for (const record of records) encoder.write(record)
  encoder.end()
  await ended
  return Buffer.concat(parts)
}

/** The records of a file that has its schema in its header. @throws Error when it is not a complete Avro file */
export async function decodeAvroFile<Decoded>(bytes: Buffer): Promise<Decoded[]> {
  const decoder = new avro.streams.BlockDecoder()
  const records: Decoded[] = []
  decoder.on('data', (record: Decoded) => records.push(record))
  const ended = once(decoder, 'end')
  decoder.end(bytes)
  await ended
  return records
}
