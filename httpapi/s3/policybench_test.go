package s3

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ogw/vfs/policy"
)

// manyPolicies is how many buckets with policies of the largest size lie beside:
// OGW_BENCH_POLICIES, or 300.
func manyPolicies(b *testing.B) int {
	v := os.Getenv("OGW_BENCH_POLICIES")
	if v == "" {
		return 300
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// cpu is the time that this process has used.
func cpu(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(unix.TimevalToNsec(u.Utime) + unix.TimevalToNsec(u.Stime))
}

// fullPolicy is about as long as one may be; nothing but its last statement is about
// the key.
func fullPolicy(bucket string) string {
	const last = `{"Effect":"Deny","Principal":"*","Action":"s3:*","Resource":"arn:aws:s3:::BKT/*","Condition":{"Bool":{"aws:SecureTransport":"true"}}}`
	var list []string
	for size, i := 200, 0; ; i++ {
		s := fmt.Sprintf(`{"Effect":"Allow","Principal":"*","Action":["s3:GetObject","s3:PutObject"],"Resource":"arn:aws:s3:::BKT/teams/%d/*","Condition":{"IpAddress":{"aws:SourceIp":"192.0.2.0/24"}}}`, i)
		if size += len(s) + len(bucket); size > policy.MaxBucketBytes {
			break
		}
		list = append(list, s)
	}
	return strings.ReplaceAll(`{"Version":"2012-10-17","Statement":[`+strings.Join(append(list, last), ",")+`]}`, "BKT", bucket)
}

// tlsOnly is a short policy, of the bucket "tls".
const tlsOnly = `{"Statement":[{"Effect":"Deny","Principal":"*","Action":"s3:*","Resource":["arn:aws:s3:::tls","arn:aws:s3:::tls/*"],"Condition":{"Bool":{"aws:SecureTransport":"true"}}}]}`

// BenchmarkPolicies: a signed GET of 4 KiB through the door, by the processor time
// that it takes, without a policy, with a short one, and with the longest; alone, and with
// manyPolicies beside.
func BenchmarkPolicies(b *testing.B) {
	d := openLocal(b)
	get := func(bucket, text string) func(b *testing.B) {
		d.bucket("alice", bucket)
		d.wantRaw("alice", "PUT", "/"+bucket+"/k", randomBytes(4<<10, 1), nil, 200, "")
		if text != "" {
			d.wantRaw("alice", "PUT", "/"+bucket+"?policy", []byte(text), nil, 204, "")
		}
		in := signedRequest(b, d, "GET", "/"+bucket+"/k", nil)
		return func(b *testing.B) {
			b.ReportAllocs()
			before := cpu(b)
			for b.Loop() {
				r := *in
				w := discard{h: http.Header{}}
				d.srv.ServeHTTP(&w, &r)
			}
			b.ReportMetric(float64(cpu(b)-before)/float64(b.N), "cpu-ns/op")
		}
	}
	none, short, full := get("none", ""), get("tls", tlsOnly), get("full", fullPolicy("full"))
	all := func(b *testing.B) {
		b.Run("none", none)
		b.Run("short", short)
		b.Run("full", full)
	}
	b.Run("alone", all)
	for i := range manyPolicies(b) {
		name := fmt.Sprintf("other-%d", i)
		d.bucket("alice", name)
		if err := d.fs.SetBucketPolicy(b.Context(), name, []byte(fullPolicy(name))); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("many", all)
}

// TestPolicyAllocations: to go by a bucket's policy, a GET reads the bucket's attributes,
// names the object and knows its condition keys, at one allocation each.
func TestPolicyAllocations(t *testing.T) {
	d := openDoor(t, Config{})
	allocations := func(bucket, text string) float64 {
		d.bucket("alice", bucket)
		d.wantRaw("alice", "PUT", "/"+bucket+"/k", randomBytes(4<<10, 1), nil, 200, "")
		if text != "" {
			d.wantRaw("alice", "PUT", "/"+bucket+"?policy", []byte(text), nil, 204, "")
		}
		in := signedRequest(t, d, "GET", "/"+bucket+"/k", nil)
		return testing.AllocsPerRun(500, func() {
			r := *in
			w := discard{h: http.Header{}}
			d.srv.ServeHTTP(&w, &r)
		})
	}
	none := allocations("none", "")
	for bucket, text := range map[string]string{"tls": tlsOnly, "full": fullPolicy("full")} {
		if n := allocations(bucket, text) - none; n > 4 {
			t.Errorf("%s: %v allocations more than without a policy", bucket, n)
		}
	}
}
