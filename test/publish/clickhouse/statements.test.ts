import { describe, expect, test } from 'vitest'
import { dialectOf } from '../../../src/publish/clickhouse/dialect.ts'
import { isLayoutOf, isSource, layoutOf } from '../../../src/publish/clickhouse/layout.ts'
import { createStateTables } from '../../../src/publish/clickhouse/state-tables.ts'
import {
  createTable,
  createView,
  type DatabasePlace,
  dropPartitions,
  dropTable,
} from '../../../src/publish/clickhouse/statements.ts'
import { allViews, publishedView } from '../../../src/publish/clickhouse/views.ts'
import { type PublishedTable, publishedTables } from '../../../src/publish/tables.ts'
import { temporaryStore } from '../../store/temporary-store.ts'

const ALONE: DatabasePlace = { database: 'lake', cluster: undefined, isReplicated: false }
const CLUSTER: DatabasePlace = { database: 'lake', cluster: 'two', isReplicated: false }
const MODERN = dialectOf('26.7')
const CLASSIC = dialectOf('18.16')

let tables: ReadonlyMap<string, PublishedTable> | undefined

/** The published tables of an empty warehouse. */
function tablesOf(): ReadonlyMap<string, PublishedTable> {
  tables ??= new Map(publishedTables(temporaryStore().db).map(table => [table.read.folder, table]))
  return tables
}

function tableNamed(name: string): PublishedTable {
  const table = tablesOf().get(name)
  if (!table) throw new Error(`There is no table ${name}`)
  return table
}

describe('tables', () => {
  test('the rows of a part and a publication are a partition, in the order of time and key', () => {
    const layout = layoutOf(tableNamed('meetings'), MODERN, ALONE)
    const [statement, ...others] = createTable(ALONE, layout)
    expect(others).toEqual([])
    expect(statement).toMatch(
      /^CREATE TABLE IF NOT EXISTS `lake`\.`_parley_meetings_[0-9a-f]{8}` \(`id` Nullable\(String\), /,
    )
    expect(statement).toContain("`start_time` Nullable(DateTime64(6, 'UTC'))")
    expect(statement).toMatch(
      /`_parley_part` String, `_publication` UInt64\) ENGINE = MergeTree PARTITION BY \(_parley_part, _publication\) ORDER BY \(`start_time`, `id`\) SETTINGS old_parts_lifetime = 60, allow_nullable_key = 1$/,
    )
  })

  test('older servers get text for instants, and no order, which may not be NULL there', () => {
    const [statement] = createTable(ALONE, layoutOf(tableNamed('meetings'), CLASSIC, ALONE))
    expect(statement).toContain('`start_time` Nullable(String)')
    expect(statement).toMatch(/ORDER BY tuple\(\) SETTINGS old_parts_lifetime = 60$/)
  })

  test('on a cluster, each shard has a local table, and a distributed one reads all', () => {
    const layout = layoutOf(tableNamed('meetings'), MODERN, CLUSTER)
    const [local, distributed] = createTable(CLUSTER, layout)
    expect(local).toContain(`CREATE TABLE IF NOT EXISTS \`lake\`.\`${layout.name}_local\` ON CLUSTER \`two\``)
    expect(distributed).toMatch(
      new RegExp(`ENGINE = Distributed\\('two', 'lake', '${layout.name}_local', rand\\(\\)\\)$`),
    )
    expect(layout.name).not.toBe(layoutOf(tableNamed('meetings'), MODERN, ALONE).name)
  })

  test('replicated tables have a path for each shard', () => {
    const place = { ...CLUSTER, isReplicated: true }
    const layout = layoutOf(tableNamed('meetings'), MODERN, place)
    expect(createTable(place, layout)[0]).toContain(
      `ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/lake/${layout.name}_local', '{replica}')`,
    )
  })

  test('the state is on the first shard', () => {
    const distributed = createStateTables(CLUSTER).filter(statement => statement.includes('Distributed('))
    expect(distributed).toHaveLength(createStateTables(ALONE).length)
    for (const statement of distributed)
      expect(statement).toMatch(/Distributed\('two', 'lake', '_parley_\w+_local', 0\)$/)
    const parts = createStateTables(ALONE).find(statement => statement.includes('`_parley_parts`'))
    expect(parts).toContain('PARTITION BY publication ORDER BY (source, part)')
  })

  test('a table with other columns has another name, which tells what it belongs to', () => {
    const table = tableNamed('meetings')
    const { columns } = table.written
    const fewer = { ...table, written: { ...table.written, columns: columns.slice(1) } }
    const [one, other] = [layoutOf(table, MODERN, ALONE).name, layoutOf(fewer, MODERN, ALONE).name]
    expect(one).not.toBe(other)
    for (const name of [one, other])
      expect([isLayoutOf('meetings', name), isSource(name)]).toEqual([true, true])
    expect(isLayoutOf('meeting', one)).toBe(false)
    expect(isSource('_parley_parts')).toBe(false)
    expect(isSource(`${one}_local`)).toBe(false)
  })

  test('a long name of a column becomes a short one for the files of the server', () => {
    const table = tableNamed('meetings')
    const long = 'ü'.repeat(60)
    const { published, columns } = layoutOf(
      { ...table, written: { ...table.written, columns: [{ name: long, kind: 'text' }] } },
      MODERN,
      ALONE,
    )
    expect(published[0]).toMatchObject({ name: long, stored: columns[0]?.name })
    expect(columns[0]?.name).toMatch(/^\w{1,60}$/)
  })

  test('partitions are dropped together, and tables with their files', () => {
    const [first, second] = dropPartitions(
      CLUSTER,
      't',
      Array.from({ length: 101 }, (_, n) => String(n)),
    )
    expect(first).toMatch(
      /^ALTER TABLE `lake`\.`t_local` ON CLUSTER `two` DROP PARTITION 0, DROP PARTITION 1, /,
    )
    expect(second).toMatch(/DROP PARTITION 100$/)
    expect(dropTable(ALONE, 't', true)).toEqual(['DROP TABLE IF EXISTS `lake`.`t` SYNC'])
    expect(dropTable(CLUSTER, 't', false)).toEqual([
      'DROP TABLE IF EXISTS `lake`.`t` ON CLUSTER `two`',
      'DROP TABLE IF EXISTS `lake`.`t_local` ON CLUSTER `two`',
    ])
  })
})

describe('views', () => {
  const viewed = (name: string, place = ALONE, dialect = MODERN) => {
    const table = tableNamed(name)
    return { table, layout: layoutOf(table, dialect, place), earlier: [] }
  }

  test('a view shows the parts of the last complete publication', () => {
    const table = viewed('teams')
    const { select } = publishedView(ALONE, MODERN, table)
    expect(select).toMatch(
      new RegExp(
        `FROM \`lake\`.\`${table.layout.name}\` WHERE \\(_parley_part, _publication\\) IN \\(SELECT part, written_in FROM \`lake\`.\`_parley_parts\` WHERE source = '${table.layout.name}' AND publication = \\(SELECT max\\(publication\\) FROM \`lake\`.\`_parley_publications\`\\)\\)$`,
      ),
    )
    expect(publishedView(CLUSTER, MODERN, table).select).toContain(') GLOBAL IN (')
  })

  test('rows of an earlier layout are shown too, with the columns of today', () => {
    const earlier = [
      {
        name: '_parley_teams_00000000',
        columns: [
          { name: 'id', type: 'Nullable(String)' },
          { name: '_deleted_at', type: 'Nullable(String)' },
        ],
      },
    ]
    const { select } = publishedView(ALONE, MODERN, { ...viewed('teams'), earlier })
    const [, second] = select.split(' UNION ALL ')
    expect(second).toMatch(/^SELECT `id`, CAST\(NULL AS Nullable\(String\)\) AS `name`/)
    expect(second).toContain(
      "accurateCastOrNull(toString(`_deleted_at`), 'DateTime64(6, \\'UTC\\')') AS `_deleted_at`",
    )
    const classic = publishedView(ALONE, CLASSIC, { ...viewed('teams', ALONE, CLASSIC), earlier })
    expect(classic.select.split(' UNION ALL ')[1]).toMatch(/^SELECT `id`, .*`_deleted_at`/)
  })

  test('newer servers replace a view in one step, with comments; older ones create it again', () => {
    const view = { name: 'v', columns: [{ name: 'a', type: 'Int64', doc: "It's" }], select: 'SELECT 1 AS a' }
    expect(createView(ALONE, view, true)).toEqual([
      expect.stringMatching(
        /^CREATE OR REPLACE VIEW `lake`\.`v` \(`a` Int64 COMMENT 'It\\'s'\) AS WITH 'parley-view-[0-9a-f]{16}' AS _parley_view SELECT 1 AS a$/,
      ),
    ])
    expect(createView(CLUSTER, view, false)).toEqual([
      'DROP TABLE IF EXISTS `lake`.`v` ON CLUSTER `two`',
      expect.stringMatching(/^CREATE VIEW IF NOT EXISTS `lake`\.`v` ON CLUSTER `two` AS WITH /),
    ])
  })

  test('every declared table has a view of its live rows, and every column a comment', () => {
    const all = [...tablesOf().values()].map(table => ({
      table,
      layout: layoutOf(table, MODERN, ALONE),
      earlier: [],
    }))
    const views = new Map(allViews(ALONE, MODERN, all).map(view => [view.name, view]))
    expect(views.get('live_transcript_entries')?.select).toContain(
      'WHERE (t.`meeting_id`) IN (SELECT o.`id` FROM `lake`.`meetings` o WHERE o.`_deleted_at` IS NULL',
    )
    expect([...views.keys()].indexOf('publications')).toBeGreaterThan([...views.keys()].indexOf('meetings'))
    for (const { columns } of views.values()) for (const { doc } of columns) expect(doc).not.toBe('')
  })
})
