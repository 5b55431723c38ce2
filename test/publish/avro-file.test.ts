import { expect, test } from 'vitest'
import { decodeAvroFile, encodeAvroFile } from '../../src/publish/iceberg/avro-file.ts'

const schemaWith = (id: number) => ({
  type: 'record',
  name: 'r',
  fields: [{ name: 'path', type: 'string', 'field-id': id }],
})

test('the header of an Avro file has the whole schema, by whose field ids readers of Iceberg find the columns', async () => {
  for (const id of [7, 8, 7]) {
    const schema = schemaWith(id)
    const bytes = await encodeAvroFile(schema, [{ path: 'a' }], { 'format-version': '2' })
    expect(bytes.toString('latin1')).toContain(JSON.stringify(schema))
    expect(await decodeAvroFile(bytes)).toEqual([{ path: 'a' }])
  }
})
