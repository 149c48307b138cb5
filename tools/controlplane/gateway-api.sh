#!/usr/bin/env bash
# Unpacks the official Gateway API CRDs (standard channel) from their Go module into a cache
# outside the tree, and prints that folder. Exit code 3 where they cannot be had.
set -euo pipefail

version=v1.7.0
cache=${PORTOLAN_CACHE:-$HOME/.cache/portolan}/gateway-api-$version
if [ ! -e "$cache/.complete" ]; then
  if ! go version >/dev/null 2>&1; then
    echo "gateway-api: no Go toolchain to fetch the CRDs with" >&2
    exit 3
  fi
  # The module asks for a newer Go than may be here; its zip is stored before that is noticed.
  (cd / && GOFLAGS=-mod=mod GOTOOLCHAIN=local go mod download "sigs.k8s.io/gateway-api@$version") >&2 || true
  zip=$(go env GOMODCACHE)/cache/download/sigs.k8s.io/gateway-api/@v/$version.zip
  if [ ! -f "$zip" ]; then
    echo "gateway-api: the module could not be downloaded" >&2
    exit 3
  fi
  mkdir -p "$cache"
  if command -v unzip >/dev/null 2>&1; then
    unzip -q -o -j "$zip" '*/config/crd/standard/*.yaml' -d "$cache"
  elif command -v python3 >/dev/null 2>&1; then
    python3 -m zipfile -e "$zip" "$cache/all"
    find "$cache/all" -path '*/config/crd/standard/*.yaml' -exec mv -f {} "$cache/" \;
    rm -rf "$cache/all"
  else
    echo "gateway-api: neither unzip nor python3 to unpack the module with" >&2
    exit 3
  fi
  touch "$cache/.complete"
fi
echo "$cache"
