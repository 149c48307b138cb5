// Prints what the Go types of Kubernetes' kinds are as protocol buffers: for each message the fields by number, with
// their JSON names, when an empty value is written, and their types. The tags of the Go structs hold both, so that
// structs which are messages of their own but are written inline are known too.
//
//	go run . messages   crates/apiserver/protobuf/data/messages.json
//	go run . samples    crates/apiserver/protobuf/tests/data/samples.jsonl: filled objects, as bytes and as JSON
//
// Run by `make generate` where a Go toolchain is there; the output is committed.
package main

import (
	"fmt"
	"os"

	admission "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	certificates "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	networking "k8s.io/api/networking/v1"
	node "k8s.io/api/node/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The API groups whose kinds are known.
var groups = []func(*runtime.Scheme) error{
	admission.AddToScheme, apiextensions.AddToScheme, apps.AddToScheme, authentication.AddToScheme,
	authorization.AddToScheme, autoscaling.AddToScheme, autoscalingv1.AddToScheme, batch.AddToScheme,
	certificates.AddToScheme, coordination.AddToScheme, core.AddToScheme, discovery.AddToScheme, events.AddToScheme,
	networking.AddToScheme, node.AddToScheme, policy.AddToScheme, rbac.AddToScheme, scheduling.AddToScheme,
	storage.AddToScheme,
}

func main() {
	scheme := runtime.NewScheme()
	for _, add := range groups {
		check(add(scheme))
	}
	if len(os.Args) == 2 && os.Args[1] == "samples" {
		printSamples(scheme)
		return
	}
	printMessages(scheme)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
