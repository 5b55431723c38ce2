import { gunzipSync } from 'node:zlib'
import { parquetMetadataAsync, parquetRead } from 'hyparquet'
import type { ParquetCell } from '../../export/parquet-types.ts'
import type { StoredFile } from '../storage/target-reader.ts'

/** Reads Parquet files by another library than the one that writes them. Only this file loads hyparquet. */

/**
 * Values as the file has them: instants and days stay numbers, so that no digit is lost, and a text keeps U+FEFF at its
 * start.
 */
const RAW_VALUES = {
  timestampFromMilliseconds: (value: bigint) => value,
  timestampFromMicroseconds: (value: bigint) => value,
  timestampFromNanoseconds: (value: bigint) => value,
  dateFromDays: (days: number) => days,
  stringFromBytes: (bytes: Uint8Array) =>
    bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'),
}

/** Snappy, which earlier versions wrote, is built in. The limit keeps a damaged page from filling the memory. */
const COMPRESSORS = {
  GZIP: (page: Uint8Array, bytes: number) => gunzipSync(page, { maxOutputLength: Math.max(1, bytes) }),
}

export type ParquetContent = Awaited<ReturnType<typeof openParquet>>

/** @throws Error when the file cannot be decoded; `groups` throws it too */
export async function openParquet(stored: StoredFile) {
  const file = {
    byteLength: stored.bytes,
    slice: async (from: number, to = stored.bytes) => Uint8Array.from(await stored.read(from, to)).buffer,
  }
  const metadata = await parquetMetadataAsync(file)
  // The first element of the schema is the row itself.
  const columns = metadata.schema.slice(1).map(({ name, field_id: id }) => ({ name, id }))
  return {
    columns,
    /**
     * The rows, one group at a time; only that group is in memory.
     * @param names the column of each cell of a row; undefined: the cell is NULL
     */
    async *groups(names: readonly (string | undefined)[]) {
      const present = names.flatMap(name => name ?? [])
      const places = names.map(name => (name === undefined ? -1 : present.indexOf(name)))
      let rowStart = 0
      for (const group of metadata.row_groups) {
        const rowEnd = rowStart + Number(group.num_rows)
        let rows: ParquetCell[][] = []
        const range = { rowStart, rowEnd, columns: present }
        await parquetRead({
          file,
          metadata,
          ...range,
          parsers: RAW_VALUES,
          compressors: COMPRESSORS,
          onComplete(read: ParquetCell[][]) {
            rows = read.map(cells => places.map(place => cells[place] ?? null))
          },
        })
        yield rows
        rowStart = rowEnd
      }
    },
  }
}
