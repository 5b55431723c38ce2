import type { Workspace } from '../workspace.ts'

/**
 * The four lists as a manifest of Airbyte's CDK, which its connector builder writes too: lists with a time are read from
 * the last time on, the others as a whole.
 */

const STREAMS = [
  timeline('activities', 'v2/activities', 'occurred_from', 'occurred_at'),
  timeline('messages', 'v2/messages', 'received_from', 'received_at'),
  stream('members', 'v1/members', {
    type: 'DefaultPaginator',
    page_size_option: pageSize(),
    page_token_option: { type: 'RequestOption', inject_into: 'request_parameter', field_name: 'page' },
    pagination_strategy: { type: 'PageIncrement', start_from_page: 1, page_size: 50 },
  }),
  stream(
    'collections',
    'v1/collections',
    byCursor(50, '{{ response.pagination.next_cursor }}', '{{ not response.pagination.next_cursor }}'),
  ),
] as const

/** The settings with the manifest, as `source-declarative-manifest` takes them. */
export function airbyteConfig({ url, apiKey, workspaceId }: Workspace) {
  return {
    url,
    api_key: apiKey,
    workspace_id: workspaceId,
    __injected_declarative_manifest: {
      version: '7.0.0',
      type: 'DeclarativeSource',
      check: { type: 'CheckStream', stream_names: ['members'] },
      streams: STREAMS,
      spec: { type: 'Spec', connection_specification: { type: 'object', properties: {} } },
    },
  }
}

/** The streams to read, and how. */
export function airbyteCatalog() {
  return {
    streams: STREAMS.map(each => {
      const isTimeline = 'incremental_sync' in each
      return {
        stream: {
          name: each.name,
          json_schema: {},
          supported_sync_modes: isTimeline ? ['full_refresh', 'incremental'] : ['full_refresh'],
        },
        sync_mode: isTimeline ? 'incremental' : 'full_refresh',
        destination_sync_mode: isTimeline ? 'append_dedup' : 'overwrite',
      }
    }),
  }
}

function timeline(name: string, path: string, parameter: string, time: string) {
  return {
    ...stream(
      name,
      path,
      byCursor(100, '{{ response.page_info.end_cursor }}', '{{ not response.page_info.has_next_page }}'),
    ),
    incremental_sync: {
      type: 'DatetimeBasedCursor',
      cursor_field: time,
      datetime_format: '%Y-%m-%dT%H:%M:%S.%fZ',
      cursor_datetime_formats: ['%Y-%m-%dT%H:%M:%S.%fZ', '%Y-%m-%dT%H:%M:%SZ'],
      start_datetime: '1970-01-01T00:00:00.000000Z',
      start_time_option: { type: 'RequestOption', inject_into: 'request_parameter', field_name: parameter },
    },
  }
}

function stream(name: string, path: string, paginator: object) {
  return {
    type: 'DeclarativeStream',
    name,
    primary_key: ['id'],
    schema_loader: {
      type: 'InlineSchemaLoader',
      schema: { type: 'object', additionalProperties: true, properties: {} },
    },
    retriever: {
      type: 'SimpleRetriever',
      requester: {
        type: 'HttpRequester',
        url_base: '{{ config.url }}',
        path,
        http_method: 'GET',
        authenticator: {
          type: 'ApiKeyAuthenticator',
          api_token: '{{ config.api_key }}',
          inject_into: { type: 'RequestOption', inject_into: 'header', field_name: 'X-Api-Key' },
        },
        request_headers: { 'X-Workspace-Id': '{{ config.workspace_id }}' },
      },
      record_selector: {
        type: 'RecordSelector',
        extractor: { type: 'DpathExtractor', field_path: ['data'] },
      },
      paginator,
    },
  }
}

function byCursor(size: number, value: string, stop: string) {
  return {
    type: 'DefaultPaginator',
    page_size_option: pageSize(),
    page_token_option: { type: 'RequestOption', inject_into: 'request_parameter', field_name: 'cursor' },
    pagination_strategy: {
      type: 'CursorPagination',
      cursor_value: value,
      stop_condition: stop,
      page_size: size,
    },
  }
}

function pageSize() {
  return { type: 'RequestOption', inject_into: 'request_parameter', field_name: 'limit' }
}
