# parley as a container. systemd/container.md says how to build and run it.

# The program, as npm would install it: the package of this clone, with the modules of the lock file.
FROM node:24-trixie-slim AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
# Named one by one: nothing else of the clone, such as a key or a warehouse, becomes a part of the build.
COPY tsconfig.json README.md LICENSE CHANGELOG.md ./
COPY config/README.md config/parley.example.toml config/
COPY drizzle drizzle/
COPY systemd systemd/
COPY src src/
RUN npm pack --silent --pack-destination /tmp \
  && mkdir /parley \
  && tar --extract --gzip --file /tmp/parleyd-*.tgz --directory /parley --strip-components=1 --no-same-owner
WORKDIR /parley
COPY package-lock.json ./
# The sources of SQLite and the binaries for other systems stay here.
RUN npm ci --ignore-scripts --omit=dev \
  && rm -r node_modules/better-sqlite3/deps node_modules/better-sqlite3/src \
  && find node_modules/better-sqlite3/prebuilds -mindepth 1 -maxdepth 1 ! -name "linux-$(node -p process.arch)*" -exec rm -r {} +

# Not a part of parley's image: the example of compose.yaml for an engine on the warehouse.
FROM debian:trixie-slim AS datasette
RUN apt-get update \
  && apt-get install --yes --no-install-recommends python3-venv \
  && rm -rf /var/lib/apt/lists/* \
  && python3 -m venv /opt/datasette \
  && /opt/datasette/bin/pip install --no-cache-dir datasette==0.65.2 \
  && install --directory --owner=10001 --group=10001 --mode=2750 /data
# Of the group that may read the warehouse, and another user than parley. While a volume is empty, Podman gives it the
# owner and mode of the folder in each image that mounts it.
USER 10002:10001
ENTRYPOINT ["/opt/datasette/bin/datasette"]

# The version of Node is pinned to its major number: building again with --pull brings its security fixes.
FROM node:24-trixie-slim
LABEL org.opencontainers.image.title="parley" \
  org.opencontainers.image.description="Keeps a SQLite warehouse true to a conversation-intelligence workspace" \
  org.opencontainers.image.licenses="MIT"
# tini is process 1: it passes signals on, and reaps what the commands of hooks leave behind, which Node does not.
# sqlite3 queries the warehouse. Who may read it outside is decided by the numbers of the user and the group.
RUN apt-get update \
  && apt-get install --yes --no-install-recommends sqlite3 tini \
  && rm -rf /var/lib/apt/lists/* \
  && groupadd --gid 10001 parley \
  && useradd --uid 10001 --gid 10001 --home-dir /data --no-create-home --shell /usr/sbin/nologin parley \
  && install --directory --owner=10001 --group=10001 --mode=2750 /data
COPY --from=build /parley /opt/parley
RUN ln -s /opt/parley/dist/cli.js /usr/local/bin/parley
# These win over a settings file. SQLite and publications write large temporary files, so not to a /tmp in memory.
ENV PARLEY_DATABASE=/data/parley.db \
  PARLEY_DATABASE_MODE=0640 \
  PARLEY_SNAPSHOT_FOLDER=/data/snapshots \
  PARLEY_API_KEY_FILE=/run/secrets/api_key \
  PARLEY_HTTP_LISTEN=127.0.0.1:8787 \
  TMPDIR=/data
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8787
STOPSIGNAL SIGTERM
# Unhealthy: parley does not read at the moment. A first start may migrate a large database before it listens.
HEALTHCHECK --interval=30s --timeout=10s --start-period=30m --retries=3 CMD ["node", "-e", "const listen = process.env.PARLEY_HTTP_LISTEN; const server = listen.startsWith('unix:') ? { socketPath: listen.slice(5) } : { port: listen.split(':').pop() }; require('node:http').get({ ...server, path: '/readyz' }, answer => { answer.pipe(process.stdout); process.exitCode = answer.statusCode === 200 ? 0 : 1 })"]
ENTRYPOINT ["tini", "--", "parley"]
CMD ["daemon"]
