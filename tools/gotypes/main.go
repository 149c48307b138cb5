// Prints how the Go types of Kubernetes' built-in kinds read and write JSON: for each struct and field, when an
// empty value is written, the Go type that decoding errors name, and the struct behind it. OpenAPI tells none of this.
//
// Run by `make generate` where a Go toolchain is there; the output is committed.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var roots = []any{
	core.ConfigMap{}, core.Endpoints{}, core.Event{}, core.LimitRange{}, core.Namespace{}, core.Node{},
	core.PersistentVolumeClaim{}, core.PersistentVolume{}, core.Pod{}, core.ResourceQuota{}, core.Secret{},
	core.ServiceAccount{}, core.Service{}, admission.MutatingWebhookConfiguration{},
	admission.ValidatingWebhookConfiguration{}, apiextensions.CustomResourceDefinition{}, apps.ControllerRevision{},
	apps.DaemonSet{}, apps.Deployment{}, apps.ReplicaSet{}, apps.StatefulSet{}, authentication.SelfSubjectReview{},
	authentication.TokenRequest{}, authentication.TokenReview{}, authorization.LocalSubjectAccessReview{},
	authorization.SelfSubjectAccessReview{}, authorization.SelfSubjectRulesReview{},
	authorization.SubjectAccessReview{}, autoscaling.HorizontalPodAutoscaler{},
	autoscalingv1.Scale{}, batch.CronJob{}, batch.Job{}, coordination.Lease{}, discovery.EndpointSlice{},
	events.Event{}, networking.IngressClass{}, networking.Ingress{}, networking.NetworkPolicy{},
	policy.PodDisruptionBudget{}, policy.Eviction{}, rbac.ClusterRoleBinding{}, rbac.ClusterRole{},
	rbac.RoleBinding{}, rbac.Role{}, scheduling.PriorityClass{}, storage.CSIDriver{}, storage.CSINode{},
	storage.StorageClass{}, storage.VolumeAttachment{}, meta.DeleteOptions{}, meta.Status{},
}

// A field: how an empty value is written ("o" left out, "a" written, "p" a pointer: left out when absent only, "n" a pointer: null when absent),
// the Go type, and the definition of the struct in it, if there is one.
type field []string

var structs = map[string]map[string]field{}

func definition(t reflect.Type) string {
	path := strings.Split(t.PkgPath(), "/")
	host := strings.Split(path[0], ".")
	for i, j := 0, len(host)-1; i < j; i, j = i+1, j-1 {
		host[i], host[j] = host[j], host[i]
	}
	return strings.Join(append(append(host, path[1:]...), t.Name()), ".")
}

// marshals says whether a type writes its own JSON.
func marshals(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[json.Marshaler]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]())
}

func add(t reflect.Type) {
	name := definition(t)
	if _, there := structs[name]; there {
		return
	}
	structs[name] = map[string]field{}
	fields(t, structs[name])
}

func fields(t reflect.Type, into map[string]field) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := strings.Split(f.Tag.Get("json"), ",")
		if f.Anonymous && tag[0] == "" {
			fields(f.Type, into)
			continue
		}
		if tag[0] == "-" || tag[0] == "" {
			continue
		}
		into[tag[0]] = describe(f.Type, tag[1:])
	}
}

func describe(t reflect.Type, options []string) field {
	omitempty, omitzero := false, false
	for _, option := range options {
		omitempty = omitempty || option == "omitempty"
		omitzero = omitzero || option == "omitzero"
	}
	emit := "a"
	switch {
	case t.Kind() == reflect.Pointer && !omitempty && !omitzero:
		emit = "n"
	case t.Kind() == reflect.Pointer:
		emit = "p"
	case omitzero, omitempty && t.Kind() != reflect.Struct:
		emit = "o"
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	out := field{emit, t.String()}
	inner := t
	for inner.Kind() == reflect.Slice || inner.Kind() == reflect.Map || inner.Kind() == reflect.Pointer {
		inner = inner.Elem()
	}
	if inner.Kind() == reflect.Struct {
		if !marshals(inner) {
			add(inner)
		}
		out = append(out, definition(inner))
	}
	return out
}

func main() {
	for _, root := range roots {
		add(reflect.TypeOf(root))
	}
	names := make([]string, 0, len(structs))
	for name := range structs {
		names = append(names, name)
	}
	sort.Strings(names)
	lines := make([]string, 0, len(names))
	for _, name := range names {
		body, err := json.Marshal(structs[name])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		lines = append(lines, fmt.Sprintf("%q:%s", name, body))
	}
	fmt.Printf("{\n%s\n}\n", strings.Join(lines, ",\n"))
}
