package s3

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"ogw/cluster"
)

// careless is an endpoint with the faults that no server at hand has. It holds
// objects in memory, and asks nobody who he is.
type careless struct {
	mu       sync.Mutex
	objects  map[string]carelessObject
	requests int

	ignoresPut, ignoresComplete, forgetsMetadata, keepsVersions, ignoresRange, listsBackwards bool
}

type carelessObject struct{ number, body string }

func (c *careless) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	query := r.URL.Query()
	_, exists := c.objects[r.URL.Path]
	refused := exists && r.Header.Get("If-None-Match") == "*"
	switch {
	case query.Has("list-type"):
		c.list(w)
	case r.Method == http.MethodPost && query.Has("uploads"):
		fmt.Fprint(w, "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>")
	case r.Method == http.MethodPut && query.Has("partNumber"):
		w.Header().Set("ETag", `"part"`)
	case r.Method == http.MethodPost && refused && !c.ignoresComplete, r.Method == http.MethodPut && refused && !c.ignoresPut:
		w.WriteHeader(http.StatusPreconditionFailed)
		fmt.Fprint(w, "<Error><Code>PreconditionFailed</Code></Error>")
	case r.Method == http.MethodPost:
		fmt.Fprint(w, "<CompleteMultipartUploadResult><Bucket>b</Bucket></CompleteMultipartUploadResult>")
	case r.Method == http.MethodPut:
		if c.keepsVersions {
			w.Header().Set("X-Amz-Version-Id", "v1")
		}
		number := r.Header.Get("X-Amz-Meta-" + numberKey)
		c.objects[r.URL.Path] = carelessObject{number, number}
	case r.Method == http.MethodGet:
		c.get(w, r)
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	}
}

func (c *careless) get(w http.ResponseWriter, r *http.Request) {
	o, exists := c.objects[r.URL.Path]
	if !exists {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, "<Error><Code>NoSuchKey</Code></Error>")
		return
	}
	if !c.forgetsMetadata {
		w.Header().Set("X-Amz-Meta-"+numberKey, o.number)
	}
	if c.ignoresRange {
		r.Header.Del("Range")
	}
	http.ServeContent(w, r, "", testTime, strings.NewReader(o.body))
}

func (c *careless) list(w http.ResponseWriter) {
	type entry struct {
		Key          string
		LastModified string
		Size         int
	}
	result := struct {
		XMLName  xml.Name `xml:"ListBucketResult"`
		Contents []entry
	}{}
	for i := range 3 {
		if c.listsBackwards {
			i = 9 - i
		}
		id := cluster.BlobID{Content: uint64(i)}
		result.Contents = append(result.Contents, entry{"ogw/blob/" + id.String(), testTime.Format("2006-01-02T15:04:05.000Z"), 8})
	}
	xml.NewEncoder(w).Encode(result)
}

func openCareless(t *testing.T, c *careless) (*Blobs, error) {
	t.Helper()
	c.objects = map[string]carelessObject{}
	return openOn(t, c)
}

// openOn opens a store at a server of its own.
func openOn(t *testing.T, h http.Handler) (*Blobs, error) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	b, err := Open(context.Background(), Options{Endpoint: server.URL, Bucket: "store", Region: "r", AccessKey: "k", SecretKey: "s"})
	if err == nil {
		t.Cleanup(func() { b.Close() })
	}
	return b, err
}

// An endpoint that cannot hold a store is refused before it holds one.
func TestUnfit(t *testing.T) {
	for says, c := range map[string]*careless{
		"PutObject ignores the condition":               {ignoresPut: true},
		"CompleteMultipartUpload ignores the condition": {ignoresComplete: true},
		"with the metadata":                             {forgetsMetadata: true},
		"the bucket keeps versions":                     {keepsVersions: true},
		"Content-Range":                                 {ignoresRange: true},
	} {
		if _, err := openCareless(t, c); !errors.Is(err, ErrUnfit) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	b, err := openCareless(t, &careless{listsBackwards: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.List(context.Background(), cluster.BlobID{}, func(cluster.BlobInfo) error { return nil }); !errors.Is(err, ErrUnfit) {
		t.Errorf("an unordered list: %v", err)
	}
}

// The requests that each operation costs.
func TestRoundTrips(t *testing.T) {
	c := &careless{}
	b, err := openCareless(t, c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, id := context.Background(), cluster.BlobID{Content: 1}
	write := func(n int) error {
		w, err := b.Create(ctx, id, -1)
		if err != nil {
			return err
		}
		defer w.Abort()
		if _, err := w.Write(make([]byte, n)); err != nil {
			return err
		}
		_, _, err = w.Commit(ctx)
		return err
	}
	for _, test := range []struct {
		name   string
		exists bool // the object
		run    func() error
		want   int
	}{
		{"8 MiB", false, func() error { return write(8 << 20) }, 1},
		{"a byte more", false, func() error { return write(8<<20 + 1) }, 4},
		{"64 MiB", false, func() error { return write(cluster.MaxBlobBytes) }, 10},
		{"list", true, func() error {
			return b.List(ctx, cluster.BlobID{}, func(cluster.BlobInfo) error { return nil })
		}, 1},
		{"locate", true, func() error { _, err := b.Locate(ctx, id); return err }, 1},
		{"read", true, func() error {
			// The bytes of the object are none of a blob, which is read twice more.
			if _, err := b.ReadAt(ctx, id, make([]byte, 1), 0); !errors.Is(err, cluster.ErrCorrupt) {
				return fmt.Errorf("bytes of others were read: %w", err)
			}
			return nil
		}, readTries},
		{"delete", true, func() error { return b.Delete(ctx, id) }, 1},
	} {
		c.mu.Lock()
		clear(c.objects)
		if test.exists {
			c.objects["/store/"+b.key(id)] = carelessObject{"n", strings.Repeat("x", 100)}
		}
		c.requests = 0
		c.mu.Unlock()
		if err := test.run(); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if c.requests != test.want {
			t.Errorf("%s: %d requests, want %d", test.name, c.requests, test.want)
		}
	}
}
