package record

import (
	"bytes"
	"testing"

	"ogw/cluster"
)

type oneValue struct {
	cluster.Reader
	v []byte
}

func (o oneValue) Get([]byte) ([]byte, error) { return o.v, nil }

// Both ways to read a bucket's attributes agree, of damaged records too.
func TestBucketAttrs(t *testing.T) {
	whole := Bucket{"grants": []byte("g"), "config.cors": bytes.Repeat([]byte("c"), 300), "empty": {}}.Encode()
	records := [][]byte{nil, {}, {9}, append(bytes.Clone(whole), 0)}
	for n := range len(whole) + 1 {
		records = append(records, whole[:n])
	}
	for _, v := range records {
		b, err := DecodeBucket(v)
		a, attrsErr := GetBucketAttrs(oneValue{v: v}, 1)
		if (err == nil) != (attrsErr == nil) {
			t.Fatalf("%q: %v, %v", v, err, attrsErr)
		}
		for _, name := range []string{"grants", "config.cors", "empty", "config", ""} {
			if err == nil && !bytes.Equal(a.Get(name), b[name]) {
				t.Errorf("%q: %s is %q, and %q", v, name, a.Get(name), b[name])
			}
		}
	}
}
