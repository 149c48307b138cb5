package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A field: its JSON name ("" where its fields stand in the parent), when an empty value is written ("o" left out, "a"
// written, "p" a pointer: left out when absent only, "n" a pointer: null when absent), its type, and its Go name where
// that is not the JSON name with a capital.
type field []string

type message struct {
	Form   string           `json:"form,omitempty"`
	Fields map[string]field `json:"fields,omitempty"`
}

// Types that write their own JSON: the form that the decoder knows.
var forms = map[reflect.Type]string{
	reflect.TypeFor[meta.Time]():                                  "time",
	reflect.TypeFor[meta.MicroTime]():                             "microTime",
	reflect.TypeFor[resource.Quantity]():                          "quantity",
	reflect.TypeFor[intstr.IntOrString]():                         "intOrString",
	reflect.TypeFor[runtime.RawExtension]():                       "raw",
	reflect.TypeFor[meta.FieldsV1]():                              "raw",
	reflect.TypeFor[apiextensions.JSON]():                         "raw",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrArray]():       "schemaOrSchemas",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrBool]():        "schemaOrBool",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrStringArray](): "schemaOrStrings",
}

// Types whose wire form is written by hand: the struct that has the tags.
var wires = map[reflect.Type]reflect.Type{
	reflect.TypeFor[meta.Time]():      reflect.TypeFor[meta.Timestamp](),
	reflect.TypeFor[meta.MicroTime](): reflect.TypeFor[meta.Timestamp](),
	reflect.TypeFor[resource.Quantity](): reflect.TypeFor[struct {
		String_ string `protobuf:"bytes,1,opt,name=string"`
	}](),
}

var messages = map[string]message{}

func definition(t reflect.Type) string {
	path := strings.Split(t.PkgPath(), "/")
	host := strings.Split(path[0], ".")
	slices.Reverse(host)
	return strings.Join(append(append(host, path[1:]...), t.Name()), ".")
}

type marshaler interface{ Marshal() ([]byte, error) }

func isMessage(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[marshaler]())
}

// add notes a message and those that it holds; the answer is its name.
func add(t reflect.Type) string {
	name := definition(t)
	if _, there := messages[name]; there {
		return name
	}
	if !isMessage(t) {
		panic("no message: " + name)
	}
	found := message{Form: forms[t], Fields: map[string]field{}}
	messages[name] = found
	if t.Kind() == reflect.Slice {
		// A named list is a message with the list in it.
		messages[name] = message{Form: "items", Fields: map[string]field{"1": {"items", "a", typeOf(reflect.SliceOf(t.Elem()), false)}}}
		return name
	}
	marshals := t.Implements(reflect.TypeFor[json.Marshaler]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]())
	if marshals && found.Form == "" {
		panic("writes its own JSON: " + name)
	}
	if wire, there := wires[t]; there {
		t = wire
	}
	for i := range t.NumField() {
		if number, row := describe(t.Field(i), found.Form); row != nil {
			found.Fields[number] = row
		}
	}
	return name
}

func describe(f reflect.StructField, form string) (string, field) {
	tag := strings.Split(f.Tag.Get("protobuf"), ",")
	if len(tag) < 2 {
		return "", nil
	}
	if _, err := strconv.Atoi(tag[1]); err != nil {
		panic(f.Name + ": " + f.Tag.Get("protobuf"))
	}
	written := strings.Split(f.Tag.Get("json"), ",")
	name := written[0]
	if form != "" {
		name = strings.ToLower(f.Name[:1]) + f.Name[1:]
	}
	inline := name == "" && f.Anonymous
	if name == "-" || name == "" && !inline || inline && f.Type.Kind() != reflect.Struct {
		panic("a field without a name: " + f.Name)
	}
	row := field{name, emit(f.Type, written[1:]), typeOf(f.Type, form == "raw")}
	if row[1] == "o" && strings.HasPrefix(row[2], "@") && f.Type != reflect.TypeFor[meta.Time]() {
		panic("left out when empty, but not known when it is: " + f.Name)
	}
	if inline || strings.ToUpper(name[:1])+name[1:] != f.Name {
		row = append(row, f.Name)
	}
	return tag[1], row
}

func emit(t reflect.Type, options []string) string {
	omitempty, omitzero := slices.Contains(options, "omitempty"), slices.Contains(options, "omitzero")
	switch {
	case t.Kind() == reflect.Pointer && !omitempty && !omitzero:
		return "n"
	case t.Kind() == reflect.Pointer:
		return "p"
	case omitzero, omitempty && t.Kind() != reflect.Struct:
		return "o"
	}
	return "a"
}

func typeOf(t reflect.Type, raw bool) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
		if raw {
			return "json"
		}
		return "bytes"
	}
	if t.Name() != "" && (t.Kind() == reflect.Struct || t.Kind() == reflect.Slice && isMessage(t)) {
		return "@" + add(t)
	}
	switch t.Kind() {
	case reflect.Slice:
		return "[]" + typeOf(t.Elem(), false)
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			panic("a map whose keys are no texts: " + t.String())
		}
		return "{}" + typeOf(t.Elem(), false)
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int32:
		return "int32"
	case reflect.Int64:
		return "int64"
	case reflect.Float64:
		return "double"
	}
	panic("no type of a field: " + t.String())
}

// printMessages writes the kinds and their messages, a line each.
func printMessages(scheme *runtime.Scheme) {
	kinds := map[string]string{}
	for gvk, t := range scheme.AllKnownTypes() {
		if gvk.Version == runtime.APIVersionInternal || !isMessage(t) {
			continue
		}
		apiVersion, kind := gvk.ToAPIVersionAndKind()
		if t.PkgPath() == reflect.TypeFor[meta.Status]().PkgPath() {
			// Every group has the kinds of the API machinery.
			kinds[kind] = add(t)
			continue
		}
		kinds[apiVersion+"/"+kind] = add(t)
	}
	fmt.Printf("{\n\"kinds\":{\n%s\n},\n\"messages\":{\n%s\n}\n}\n", lines(kinds), lines(messages))
}

func lines[T any](rows map[string]T) string {
	out := make([]string, 0, len(rows))
	for name, row := range rows {
		body, err := json.Marshal(row)
		check(err)
		out = append(out, fmt.Sprintf("%q:%s", name, body))
	}
	sort.Strings(out)
	return strings.Join(out, ",\n")
}
