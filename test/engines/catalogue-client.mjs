import { IcebergError, IcebergRestCatalog } from 'iceberg-js'

/** Reads a catalogue by another client. Arguments: the URL of the catalogue, its token. Prints one JSON object. */
const [, , baseUrl, token] = process.argv
const catalogue = new IcebergRestCatalog({ baseUrl, auth: { type: 'bearer', token } })

const refusalOf = work =>
  work.then(
    () => null,
    error => (error instanceof IcebergError ? [error.status, error.icebergType] : String(error)),
  )

const [namespace] = await catalogue.listNamespaces()
const tables = await catalogue.listTables(namespace)
const loaded = await Promise.all(tables.map(table => catalogue.loadTable(table)))
const missing = { ...namespace, name: 'missing' }
process.stdout.write(
  JSON.stringify({
    namespace,
    snapshots: Object.fromEntries(
      loaded.map((table, place) => [tables[place].name, table['current-snapshot-id']]),
    ),
    exists: [await catalogue.tableExists(tables[0]), await catalogue.tableExists(missing)],
    missing: await refusalOf(catalogue.loadTable(missing)),
    dropping: await refusalOf(catalogue.dropTable(tables[0])),
  }),
)
