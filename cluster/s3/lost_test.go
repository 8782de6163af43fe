package s3

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"ogw/cluster"
)

// TestLostRefusal: an endpoint that has an object refuses another one under its key
// before it has read the body, and the connection ends with the answer on its way.
// What is there shows how the write ended.
func TestLostRefusal(t *testing.T) {
	var number atomic.Value // of the object that is there
	var opened atomic.Bool
	others := &careless{objects: make(map[string]carelessObject)}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !opened.Load():
			others.ServeHTTP(w, r)
		case r.Method == http.MethodPut:
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		case number.Load() == "":
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, "<Error><Code>NoSuchKey</Code></Error>")
		default:
			w.Header().Set("X-Amz-Meta-"+numberKey, number.Load().(string))
			http.ServeContent(w, r, "", testTime, bytes.NewReader([]byte("x")))
		}
	})
	b, err := openOn(t, handler)
	if err != nil {
		t.Fatal(err)
	}
	opened.Store(true)
	for _, c := range []struct {
		number string
		want   error
	}{{"", cluster.ErrUnavailable}, {"another", cluster.ErrExists}, {"own", nil}} {
		number.Store(c.number)
		_, err := b.put(t.Context(), "k", make([]byte, 1<<20), "own")
		if err == nil {
			t.Fatal("it was answered")
		}
		if err := b.outcome(t.Context(), "k", "own", err); !errors.Is(err, c.want) {
			t.Errorf("with the object of %q: %v", c.number, err)
		}
	}
}

// TestForeignAnswers: a proxy whose backend is away answers 404 in words of its own. That says
// nothing of what is stored.
func TestForeignAnswers(t *testing.T) {
	all := &careless{objects: make(map[string]carelessObject)}
	var foreign atomic.Int64 // how many answers are
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if foreign.Add(-1) >= 0 {
			http.NotFound(w, r)
			return
		}
		all.ServeHTTP(w, r)
	})
	b, err := openOn(t, handler)
	if err != nil {
		t.Fatal(err)
	}
	id := cluster.BlobID{Content: 1}
	write := func(n int) error {
		w, err := b.Create(t.Context(), id, -1)
		if err != nil {
			return err
		}
		defer w.Abort()
		if _, err := w.Write(make([]byte, n)); err != nil {
			return err
		}
		_, _, err = w.Commit(t.Context())
		return err
	}
	const forEver = 1 << 30
	b.tries.patient = false
	for name, call := range map[string]func() error{
		"a write":           func() error { return write(1) },
		"a write of parts":  func() error { return write(8<<20 + 1) },
		"a read":            func() error { _, err := b.ReadAt(t.Context(), id, make([]byte, 1), 0); return err },
		"a read at no byte": func() error { _, err := b.ReadAt(t.Context(), id, nil, 0); return err },
		"a location":        func() error { _, err := b.Locate(t.Context(), id); return err },
		"a delete":          func() error { return b.Delete(t.Context(), id) },
		"two deletes":       func() error { return b.Delete(t.Context(), id, cluster.BlobID{Content: 2}) },
		"a list": func() error {
			return b.List(t.Context(), cluster.BlobID{}, func(cluster.BlobInfo) error { return nil })
		},
		"a claim": func() error { _, _, err := b.Claim(t.Context(), 7, 3); return err },
		"usage":   func() error { _, err := b.Usage(t.Context()); return err },
	} {
		foreign.Store(forEver)
		if err := call(); !errors.Is(err, cluster.ErrUnavailable) || errors.Is(err, cluster.ErrNotFound) || errors.Is(err, cluster.ErrMismatch) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.tries.patient = true
	foreign.Store(3)
	if err := write(1); err != nil {
		t.Errorf("a write that was refused for a while: %v", err)
	}
	if _, there := all.objects["/store/"+b.key(id)]; !there {
		t.Error("it is not there")
	}
}

// TestEmptied: who claimed a bucket notices that it is empty.
func TestEmptied(t *testing.T) {
	all := &careless{}
	b, err := openCareless(t, all)
	if err != nil {
		t.Fatal(err)
	}
	usage := func() error {
		b.check.at = time.Time{}
		_, err := b.Usage(t.Context())
		return err
	}
	if err := usage(); err != nil {
		t.Errorf("nobody claimed it: %v", err)
	}
	if _, _, err := b.Claim(t.Context(), 7, 0); err != nil {
		t.Fatal(err)
	}
	if err := usage(); err != nil {
		t.Errorf("it is claimed: %v", err)
	}
	all.mu.Lock()
	clear(all.objects)
	all.mu.Unlock()
	if err := usage(); !errors.Is(err, cluster.ErrUnavailable) {
		t.Errorf("it is empty: %v", err)
	}
}
