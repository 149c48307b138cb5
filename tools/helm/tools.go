//go:build tools

// Package helm names the program that `build.sh` builds.
package helm

import _ "helm.sh/helm/v4/cmd/helm"
