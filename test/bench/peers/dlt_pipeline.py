"""
The four lists as dlt's documentation of its source for REST APIs shows it: lists with a time are loaded from the last
time on and merged by id, the others are replaced.

Environment: URL, API_KEY and WORKSPACE_ID of the API. Argument: the folder of the pipeline and its DuckDB database.
"""

import os
import sys

import dlt
from dlt.sources.rest_api import rest_api_source

folder = sys.argv[1]
by_cursor = {
    "type": "cursor",
    "cursor_path": "page_info.end_cursor",
    "cursor_param": "cursor",
    "has_more_path": "page_info.has_next_page",
}


def timeline(name, path, parameter, time):
    since = {"cursor_path": time, "initial_value": "1970-01-01T00:00:00.000Z", "start_param": parameter}
    return {
        "name": name,
        "primary_key": "id",
        "write_disposition": "merge",
        "endpoint": {"path": path, "params": {"limit": 100}, "paginator": by_cursor, "incremental": since},
    }


source = rest_api_source(
    {
        "client": {
            "base_url": os.environ["URL"],
            "headers": {"X-Workspace-Id": os.environ["WORKSPACE_ID"]},
            "auth": {
                "type": "api_key",
                "name": "X-Api-Key",
                "api_key": os.environ["API_KEY"],
                "location": "header",
            },
        },
        "resource_defaults": {
            "write_disposition": "replace",
            "endpoint": {"data_selector": "data", "params": {"limit": 50}},
        },
        "resources": [
            timeline("activities", "v2/activities", "occurred_from", "occurred_at"),
            timeline("messages", "v2/messages", "received_from", "received_at"),
            {
                "name": "members",
                "endpoint": {
                    "path": "v1/members",
                    "paginator": {
                        "type": "page_number",
                        "base_page": 1,
                        "total_path": "pagination.total_pages",
                    },
                },
            },
            {
                "name": "collections",
                "endpoint": {
                    "path": "v1/collections",
                    "paginator": {
                        "type": "cursor",
                        "cursor_path": "pagination.next_cursor",
                        "cursor_param": "cursor",
                    },
                },
            },
        ],
    }
)
pipeline = dlt.pipeline(
    pipeline_name="peer",
    pipelines_dir=folder,
    destination=dlt.destinations.duckdb(f"{folder}/peer.duckdb"),
    dataset_name="lists",
)
pipeline.run(source)
