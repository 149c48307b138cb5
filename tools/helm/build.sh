#!/usr/bin/env bash
# Builds helm from its Go module into a cache outside the tree, and prints the program's path.
# A second call is a no-op.
#
# Without a Go toolchain a helm of the same major version on PATH is used; without either the
# exit code is 3 and the tests of the chart say that they were not run.
set -euo pipefail
cd "$(dirname "$0")"

version=$(sed -n 's#^require helm.sh/helm/v4 \(v[0-9.]*\)$#\1#p; s#^\thelm.sh/helm/v4 \(v[0-9.]*\)$#\1#p' go.mod)
cache=${PORTOLAN_CACHE:-$HOME/.cache/portolan}/helm-$version
if [ -x "$cache/helm" ]; then
  echo "$cache/helm"
  exit 0
fi
if ! go version >/dev/null 2>&1; then
  if found=$(command -v helm) && [[ $("$found" version --template '{{.Version}}') == v4.* ]]; then
    echo "$found"
    exit 0
  fi
  echo "helm: no Go toolchain and no helm 4 on PATH: helm cannot be built here" >&2
  exit 3
fi

echo "helm: building helm $version from its Go module (about 2 minutes, once)" >&2
mkdir -p "$cache"
export CGO_ENABLED=0 GOFLAGS="-mod=mod -buildvcs=false" GOTOOLCHAIN=local
flags="-s -w -X helm.sh/helm/v4/internal/version.version=$version"
go build -trimpath -ldflags "$flags" -o "$cache/.helm.$$" helm.sh/helm/v4/cmd/helm
mv "$cache/.helm.$$" "$cache/helm"
echo "$cache/helm"
