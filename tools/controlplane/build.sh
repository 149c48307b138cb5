#!/usr/bin/env bash
# Builds etcd, kube-apiserver, kube-controller-manager and kubectl from their Go modules
# into a cache outside the tree, and prints that folder. A second call is a no-op.
#
# Without a Go toolchain the folder named by KUBEBUILDER_ASSETS is used; without either,
# the exit code is 3 and the parity tier is reported as not run.
set -euo pipefail
cd "$(dirname "$0")"

kubernetes=$(sed -n 's#^\tk8s.io/kubernetes \(v[0-9.]*\)$#\1#p' go.mod)
etcd=$(sed -n 's#^\tgo.etcd.io/etcd/server/v3 \(v[0-9.]*\)$#\1#p' go.mod)
cache=${PORTOLAN_CACHE:-$HOME/.cache/portolan}/controlplane-$kubernetes-etcd-$etcd

if [ -x "$cache/kubectl" ] && [ -x "$cache/etcd" ] && [ -x "$cache/kube-apiserver" ] \
  && [ -x "$cache/kube-controller-manager" ]; then
  echo "$cache"
  exit 0
fi
if ! go version >/dev/null 2>&1; then
  if [ -n "${KUBEBUILDER_ASSETS:-}" ] && [ -x "$KUBEBUILDER_ASSETS/kube-apiserver" ]; then
    echo "$KUBEBUILDER_ASSETS"
    exit 0
  fi
  echo "controlplane: no Go toolchain and no KUBEBUILDER_ASSETS: the real API server cannot be built here" >&2
  exit 3
fi

echo "controlplane: building Kubernetes $kubernetes and etcd $etcd from their Go modules (about 6 minutes, once)" >&2
mkdir -p "$cache"
major=$(echo "$kubernetes" | cut -d. -f1 | tr -d v)
minor=$(echo "$kubernetes" | cut -d. -f2)
flags="-s -w"
for pkg in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  flags="$flags -X $pkg.gitVersion=$kubernetes -X $pkg.gitMajor=$major -X $pkg.gitMinor=$minor"
done
export CGO_ENABLED=0 GOFLAGS="-mod=mod -buildvcs=false"
build() { # name package
  [ -x "$cache/$1" ] && return 0
  echo "controlplane: $1" >&2
  go build -trimpath -ldflags "$flags" -o "$cache/.$1.$$" "$2"
  mv "$cache/.$1.$$" "$cache/$1"
}
build kubectl k8s.io/kubernetes/cmd/kubectl
build etcd go.etcd.io/etcd/server/v3
build kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver
build kube-controller-manager k8s.io/kubernetes/cmd/kube-controller-manager
# What Kubernetes knows about its built-in kinds, for `make generate`.
module=$(go list -m -f '{{.Dir}}' k8s.io/kubernetes)
mkdir -p "$cache/openapi"
cp -f "$module"/api/openapi-spec/v3/*.json "$cache/openapi/"
chmod -R u+w "$cache/openapi"
echo "$cache"
