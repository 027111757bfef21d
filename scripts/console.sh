#!/bin/sh
# Builds the web console, console/dist, which the program contains. Run it before cargo.
#
# It needs Node.js and npm. Without them the program is built without the console, and says so at
# /console/. A build that is newer than its sources is kept. The packages that it installs contain
# the players of the browser tests, too.
set -eu
cd "$(dirname "$0")/../console"

without() { # says why there is no console
    echo "note: continuing without the web console: $1"
    exit 0
}

command -v node >/dev/null 2>&1 || without "Node.js is not installed (20.19 or newer)"
command -v npm >/dev/null 2>&1 || without "npm is not installed"

: "${HOME:=$(getent passwd "$(id -u)" | cut -d: -f6)}"
export HOME
if [ ! node_modules/.package-lock.json -nt package-lock.json ]; then
    npm ci --ignore-scripts --no-audit --no-fund </dev/null ||
        without "its packages could not be downloaded (npm ci --prefix console --ignore-scripts)"
fi

# As vite requires.
new_enough='const [major, minor] = process.versions.node.split(".").map(Number);
    process.exit(major > 20 || (major === 20 && minor >= 19) ? 0 : 1)'
node -e "$new_enough" || without "Node.js is older than 20.19: $(node --version)"

changed() { # whether a source is newer than what was built
    [ ! -e dist/index.html ] || [ ! -e dist/report.js ] ||
        find . \( -name node_modules -o -name dist -o -name tests -o -name test-results \) -prune \
            -o -type f -newer dist/index.html -print | grep -q .
}
if changed; then npm run --silent build; fi
