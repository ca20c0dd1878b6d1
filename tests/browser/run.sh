#!/usr/bin/env bash
# In a real browser: the notebooks with sliders (make test-browser), or the site (make test-site).
# Installs playwright-core into build/browser, the browser must be there.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${1:-.venv/bin/python}
script=tests/browser/${2:-explore}.mjs
missing() {
  echo "$script: SKIPPED, nothing was tested: $1" >&2
  exit 2
}
for program in node npm; do
  command -v $program >/dev/null || missing "$program not found; install Node.js 18 or newer"
done
chromium=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}
[ -x "$chromium" ] || missing "no Chromium found; install it (Debian: apt-get install chromium) or set CHROMIUM to its path"
mkdir -p build/browser
cp tests/browser/package.json build/browser/
npm install --prefix build/browser --no-package-lock --no-audit --no-fund --silent || missing "npm could not install playwright-core"
exec node "$script" "$python" "$chromium"
