import { parquetMetadataAsync, parquetRead } from 'hyparquet'
import type { ParquetCell } from '../../export/parquet-types.ts'
import type { StoredFile } from '../storage/target-reader.ts'

/** Reads Parquet files by another library than the one that writes them. Only this file loads hyparquet. */

/** Values as the file has them: instants and days stay numbers, so that no digit is lost, and U+FEFF at a text's start stays. */
const RAW_VALUES = {
  timestampFromMilliseconds: (value: bigint) => value,
  timestampFromMicroseconds: (value: bigint) => value,
  timestampFromNanoseconds: (value: bigint) => value,
  dateFromDays: (days: number) => days,
  stringFromBytes: (bytes: Uint8Array) =>
    bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'),
}

/**
 * The rows of a file, one group at a time; only that group is in memory. The cells are in the order of the field ids; a
 * column that the file does not have is NULL.
 * @throws Error when the file cannot be decoded
 */
export async function* parquetRowGroups(
  stored: StoredFile,
  fieldIds: readonly number[],
): AsyncGenerator<readonly ParquetCell[][]> {
  const file = {
    byteLength: stored.bytes,
    slice: async (from: number, to = stored.bytes) => Uint8Array.from(await stored.read(from, to)).buffer,
  }
  const metadata = await parquetMetadataAsync(file)
  const names = new Map(metadata.schema.map(({ field_id: id, name }) => [id, name]))
  const present = fieldIds.flatMap(id => names.get(id) ?? [])
  const places = fieldIds.map(id => present.indexOf(names.get(id) ?? ''))
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
      onComplete(read: ParquetCell[][]) {
        rows = read.map(cells => places.map(place => cells[place] ?? null))
      },
    })
    yield rows
    rowStart = rowEnd
  }
}
