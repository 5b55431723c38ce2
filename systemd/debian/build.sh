#!/usr/bin/env bash
# Builds the Debian package of parley from a clone: systemd/debian/build.sh [FOLDER FOR THE PACKAGE [TARBALL OF npm pack]]
# The modules are those of package-lock.json. SQLite's native module comes for Node 20 and for newer ones, so the package
# works with every Node that it allows, and installing it needs neither a compiler nor the network.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
target=$(realpath "${1:-$root}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
# The times in the package are that of the commit, so that it can be built again with the same bytes.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH

architecture=$(dpkg --print-architecture)
case $architecture in
amd64) prebuilt=linux-x64 ;;
arm64) prebuilt=linux-arm64 ;;
*) echo "parley has no Debian package for $architecture" >&2 && exit 1 ;;
esac

# The Nodes that install the modules: npm leaves out a module that its own Node cannot load.
for version in 20 24; do
  npm install --silent --prefix "$work/node-$version" "node@$version" >/dev/null
done
with_node() { PATH="$work/node-$1/node_modules/node/bin:$PATH" "${@:2}"; }

package=$work/package
program=$package/usr/lib/parleyd
mkdir -p "$program"
tarball=${2:-$work/$(cd "$root" && npm pack --silent --pack-destination "$work" | tail -n 1)}
tar -xzf "$tarball" -C "$program" --strip-components=1 --no-same-owner
cp "$root/package-lock.json" "$program"
(cd "$program" && with_node 24 npm ci --silent --omit=dev --ignore-scripts)
# What the clone has compiled for Node 20 is taken from there; the program compiles it if it cannot be loaded.
compiled=src/store/database/node-20/node_modules
if [ -d "$root/$compiled" ]; then cp -r "$root/$compiled/." "$program/$compiled"; fi
headers=$(echo "$work"/node-20/node_modules/node/node_modules/node-linux-*)
npm_config_nodedir=$headers with_node 20 node "$program/src/store/database/node-20/install.js" 2>&1 | tail -n 1

# What only a build needs, and what modules bring for their own developers.
rm "$program/package-lock.json" "$program/node_modules/.package-lock.json"
rm -r "$program/node_modules/.bin"
sqlite=$program/node_modules/better-sqlite3
find "$sqlite/prebuilds" -mindepth 1 -maxdepth 1 ! -name "$prebuilt*" -exec rm -r {} +
modules=$program/$compiled
find "$modules" -mindepth 1 -maxdepth 1 ! -name better-sqlite3 ! -name bindings ! -name file-uri-to-path -exec rm -r {} +
find "$modules/better-sqlite3/build" -type f ! -path "*/build/Release/better_sqlite3.node" -delete
rm -r "$sqlite"/{deps,src,binding.gyp} "$modules/better-sqlite3"/{deps,src,binding.gyp}
for folder in "$program/node_modules" "$modules"; do
  find "$folder" -depth \( -name '.?*' -o -name test -o -name tests -o -name benchmark -o -name benchmarks -o -name examples \) -exec rm -r {} +
  find "$folder" -type f \( -name '*.html' -o -name '*.sh' -o -name '*.map' -o -name '*.ts' -o -name '*.md' -o -name '*.mts' -o -name '*.cts' \) -delete
  # Programs of the modules: nothing runs them.
  { grep -rlI --null '^#!' "$folder" || true; } | xargs -0r sed -i '1{/^#!/d}'
done
find "$program" -depth -type d -empty -delete
find "$program" -type f -exec chmod a-x {} +
find "$program" -name '*.node' -exec strip --strip-unneeded {} +
# The id depends on the folder of the compilation. It is zeroed, since strip would remove the RELRO segment with it.
{ printf '\4\0\0\0\24\0\0\0\3\0\0\0GNU\0' && head -c 20 /dev/zero; } >"$work/id"
objcopy --update-section .note.gnu.build-id="$work/id" "$modules/better-sqlite3/build/Release/better_sqlite3.node"
chmod +x "$program/dist/cli.js"

mkdir -p "$package"/usr/bin "$package"/etc/parley
ln -s ../lib/parleyd/dist/cli.js "$package/usr/bin/parley"
ln -s ../lib/parleyd/dist/cli.js "$package/usr/bin/parleyd"
for unit in "$root"/systemd/*.service "$root"/systemd/*.timer; do
  install -D -m 644 "$unit" -t "$package/usr/lib/systemd/system"
done
sed -i 's#/opt/parley/#/usr/lib/parleyd/#' "$package"/usr/lib/systemd/system/*
install -D -m 644 "$root/systemd/parley.conf" "$package/usr/lib/sysusers.d/parleyd.conf"
install -D -m 644 "$root/dist/reference/parley.bash" "$package/usr/share/bash-completion/completions/parley"
install -D -m 644 "$root/dist/reference/_parley" -t "$package/usr/share/zsh/vendor-completions"
install -D -m 644 "$root/dist/reference/parley.fish" -t "$package/usr/share/fish/vendor_completions.d"
install -D -m 644 "$root/dist/reference/parley.1" -t "$package/usr/share/man/man1"
gzip -9n "$package/usr/share/man/man1/parley.1"
ln -s parley.1.gz "$package/usr/share/man/man1/parleyd.1.gz"
install -D -m 644 "$root/LICENSE" "$package/usr/share/doc/parleyd/copyright"
gzip -9nc "$root/CHANGELOG.md" >"$package/usr/share/doc/parleyd/changelog.gz"
install -D -m 644 "$root/systemd/debian/lintian-overrides" "$package/usr/share/lintian/overrides/parleyd"

version=$(node -p 'require(process.argv[1]).version' "$root/package.json")-1
maintainer='The parley authors <parley@parley.example>'
gzip -9nc >"$package/usr/share/doc/parleyd/changelog.Debian.gz" <<CHANGELOG
parleyd ($version) unstable; urgency=medium

  * See changelog.gz.

 -- $maintainer  $(date -uR -d "@$SOURCE_DATE_EPOCH")
CHANGELOG

mkdir "$package/DEBIAN"
install -m 755 "$root"/systemd/debian/{postinst,prerm,postrm} "$package/DEBIAN"
cat >"$package/DEBIAN/control" <<CONTROL
Package: parleyd
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Section: database
Priority: optional
Installed-Size: $(find "$package" -type f -printf '%s\n' | awk '{ kib += int(($1 + 1023) / 1024) } END { print kib }')
Depends: nodejs (>= 20.19), libc6 (>= 2.34), libstdc++6, systemd | systemd-standalone-sysusers
Suggests: sqlite3
Description: keeps a local SQLite warehouse of a conversation-intelligence workspace
 parley reads meetings with transcripts and summaries, e-mails, CRM records and
 the timeline of activities from the HTTP API of a conversation-intelligence
 product, and keeps them as tables in one SQLite file: new data within a minute,
 late data, edits and deletions within the interval for their age.
CONTROL
dpkg-deb --root-owner-group --build "$package" "$target/parleyd_${version}_$architecture.deb"
