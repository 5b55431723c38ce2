#!/usr/bin/env bash
# Installs query engines for the tests of this folder, each in the version that its file names:
#   test/engines/install.sh spark pyiceberg duckdb trino
# They stay in node_modules/.cache/engines. What is there in the same version is not installed again. Ends with one
# sentence and a status other than 0 when an engine cannot be had.
set -euo pipefail
cd "$(dirname "$0")"
cache=$(realpath ../..)/node_modules/.cache/engines
mkdir -p "$cache"

fail() {
  echo "$1" >&2
  exit 1
}

# Whether the folder has what the file names, and otherwise an empty folder. `installed` says later that it has.
is_installed() {
  cmp -s "$1" "$2/of" && return
  rm -rf "$2" && mkdir -p "$2" && return 1
}
installed() { cp "$1" "$2/of"; }

python_packages() {
  local file=requirements-$1.txt folder=$cache/$1/python
  is_installed "$file" "$folder" && return
  python3 -m venv "$folder" || fail "$1 needs python3 with venv (Debian: python3-venv)."
  "$folder/bin/pip" install --quiet --no-deps --requirement "$file" || fail "pip cannot install $file."
  installed "$file" "$folder"
}

# The paths of the jars of a Maven project, as Java takes them.
jars() {
  local file=$1/pom.xml folder=$cache/$1/jars
  is_installed "$file" "$folder" && return
  command -v mvn >/dev/null || fail "$1 needs Maven (Debian: maven)."
  mvn --quiet --batch-mode --file "$file" dependency:build-classpath "-Dmdep.outputFile=$folder/classpath" ||
    fail "Maven cannot fetch the jars of $1."
  installed "$file" "$folder"
}

# DuckDB finds its extensions in a folder with its version and the platform, by the names that it gives them.
duckdb_extensions() {
  local folder=$cache/duckdb
  python_packages duckdb
  local found=("$folder"/python/lib/python3*/site-packages/duckdb_extension_*/extensions/*/*.duckdb_extension)
  local version=$(basename "$(dirname "${found[0]}")")
  mkdir -p "$folder/extensions/$version/linux_amd64"
  cp "${found[@]}" "$folder/extensions/$version/linux_amd64"
  (cd "$folder/extensions/$version/linux_amd64" && mv -f sqlite.duckdb_extension sqlite_scanner.duckdb_extension)
}

for engine; do
  case $engine in
  spark)
    python_packages spark
    jars spark
    ;;
  pyiceberg) python_packages pyiceberg ;;
  duckdb) duckdb_extensions ;;
  trino) jars trino ;;
  *) fail "$engine is no engine: expected spark, pyiceberg, duckdb or trino." ;;
  esac
done
