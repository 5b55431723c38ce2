"""pyiceberg. Answers the questions that `engine-process.ts` describes.

    python pyiceberg-reader.py PROPERTIES

PROPERTIES: a JSON object with those of the catalogue, and of access to files. A question is an object with the name of
a table of the catalogue as `table`, or the address of its metadata as `metadata`; and a `snapshot` and a `filter` where
the scan has them. `{"tables": true}` asks for the names of all tables.
"""

import json
import sys

import pyarrow
from pyiceberg.catalog import load_catalog
from pyiceberg.table import StaticTable


def cells_of(column):
    kind = column.type
    if pyarrow.types.is_timestamp(kind):
        if kind.unit != 'us' or kind.tz != 'UTC':
            raise TypeError(f'an instant is read as {kind}')
        return column.cast(pyarrow.int64()).cast(pyarrow.string()).to_pylist()
    if pyarrow.types.is_int64(kind) or pyarrow.types.is_date(kind):
        return column.cast(pyarrow.string()).to_pylist()
    return column.to_pylist()


def answer(properties, catalogue, question):
    if 'tables' in question:
        names = sorted(name[-1] for name in catalogue.list_tables('parley'))
        return {'columns': ['name'], 'rows': [[name] for name in names]}
    if 'metadata' in question:
        table = StaticTable.from_metadata(question['metadata'], properties)
    else:
        table = catalogue.load_table(('parley', question['table']))
    options = {'snapshot_id': question.get('snapshot')}
    if 'filter' in question:
        options['row_filter'] = question['filter']
    found = table.scan(**options).to_arrow()
    columns = [cells_of(column) for column in found.columns]
    rows = [list(row) for row in zip(*columns)]
    return {'columns': found.column_names, 'rows': rows}


if __name__ == '__main__':
    properties = json.loads(sys.argv[1])
    catalogue = load_catalog('lake', **properties)
    for line in sys.stdin:
        try:
            print(json.dumps(answer(properties, catalogue, json.loads(line))), flush=True)
        except Exception as error:
            print(json.dumps({'error': f'{type(error).__name__}: {error}'}), flush=True)
