package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand"
	"reflect"
	"sort"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A filled object as a client sends it, and the JSON of what a server reads.
type sample struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Protobuf   []byte          `json:"protobuf"`
	JSON       json.RawMessage `json:"json"`
}

// Objects of a kind: the empty one, and this many with more and more in them.
const filled = 2

// printSamples writes samples of every kind, a line each. The kind's name is the seed.
func printSamples(scheme *runtime.Scheme) {
	serializer := protobuf.NewSerializer(scheme, scheme)
	metaPackage := reflect.TypeFor[meta.Status]().PkgPath()
	var out []string
	for gvk, t := range scheme.AllKnownTypes() {
		if gvk.Version == runtime.APIVersionInternal || !isMessage(t) || strings.HasSuffix(gvk.Kind, "List") {
			continue
		}
		// Of the kinds that every group has one will do; a watch's event is no object.
		if t.PkgPath() == metaPackage && gvk.GroupVersion() != core.SchemeGroupVersion || t == reflect.TypeFor[meta.WatchEvent]() {
			continue
		}
		seed := fnv.New64a()
		fmt.Fprint(seed, gvk)
		random := rand.New(rand.NewSource(int64(seed.Sum64())))
		for round := range filled + 1 {
			object, err := scheme.New(gvk)
			check(err)
			if round > 0 {
				filler{random, float64(round) / 4}.fill(reflect.ValueOf(object).Elem(), 0)
			}
			out = append(out, line(serializer, object, gvk))
		}
	}
	sort.Strings(out)
	fmt.Println(strings.Join(out, "\n"))
}

func line(serializer *protobuf.Serializer, object runtime.Object, gvk schema.GroupVersionKind) string {
	object.GetObjectKind().SetGroupVersionKind(gvk)
	var sent bytes.Buffer
	check(serializer.Encode(object, &sent))
	read, _, err := serializer.Decode(sent.Bytes(), nil, nil)
	check(err)
	text, err := json.Marshal(read)
	check(err)
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	row, err := json.Marshal(sample{apiVersion, kind, sent.Bytes(), text})
	check(err)
	return string(row)
}

type filler struct {
	random *rand.Rand
	// How likely an optional value is there.
	chance float64
}

var words = []string{"", "a", "web", "10.0.0.1", "Ünïcode ☃", "with \"quotes\"\n"}
var quantities = []string{"0", "1", "100m", "1Gi", "1500M", "12e3", "-5", "0.5"}
var raws = []string{`{"a":[1,{"b":null}],"c":1.5}`, `"text"`, `{}`, `7`}

func (f filler) fill(v reflect.Value, depth int) {
	switch target := v.Addr().Interface().(type) {
	case *meta.TypeMeta:
		return
	case *meta.Time:
		target.Time = time.Unix(f.random.Int63n(4_000_000_000)-1_000_000_000, 0)
	case *meta.MicroTime:
		target.Time = time.Unix(f.random.Int63n(4_000_000_000), f.random.Int63n(1_000_000)*1000)
	case *resource.Quantity:
		*target = resource.MustParse(quantities[f.random.Intn(len(quantities))])
	case *intstr.IntOrString:
		*target = intstr.FromInt32(int32(f.random.Intn(9) - 2))
		if f.random.Intn(2) == 0 {
			*target = intstr.FromString("50%")
		}
	case *runtime.RawExtension:
		target.Raw = f.raw()
	case *meta.FieldsV1:
		target.Raw = []byte(`{"f:metadata":{"f:labels":{".":{}}}}`)
	case *apiextensions.JSON:
		target.Raw = f.raw()
	default:
		f.plain(v, depth)
	}
}

func (f filler) raw() []byte {
	return []byte(raws[f.random.Intn(len(raws))])
}

// wanted says whether an optional value is there: deep down fewer are.
func (f filler) wanted(depth int) bool {
	return f.random.Float64() < f.chance/(1+float64(max(0, depth-3))*0.7)
}

func (f filler) plain(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i), depth+1)
		}
	case reflect.Pointer:
		if f.wanted(depth) {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), depth)
		}
	case reflect.Slice:
		f.list(v, depth)
	case reflect.Map:
		f.mapping(v, depth)
	case reflect.String:
		v.SetString(words[f.random.Intn(len(words))])
	case reflect.Bool:
		v.SetBool(f.random.Intn(2) == 0)
	case reflect.Int32, reflect.Int64:
		v.SetInt([]int64{0, 1, -1, 80, 1 << 30}[f.random.Intn(5)])
	case reflect.Float64:
		v.SetFloat([]float64{0, 1, -2.5, 1e-3}[f.random.Intn(4)])
	default:
		panic("no filling for " + v.Type().String())
	}
}

func (f filler) list(v reflect.Value, depth int) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		v.SetBytes([]byte{0, 1, 0xfe, 'x'}[:f.random.Intn(5)])
		return
	}
	for f.wanted(depth) && v.Len() < 2 {
		item := reflect.New(v.Type().Elem()).Elem()
		f.fill(item, depth)
		v.Set(reflect.Append(v, item))
	}
}

func (f filler) mapping(v reflect.Value, depth int) {
	for _, key := range []string{"", "key", "kubernetes.io/os"} {
		if !f.wanted(depth) {
			continue
		}
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		item := reflect.New(v.Type().Elem()).Elem()
		f.fill(item, depth)
		v.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), item)
	}
}
