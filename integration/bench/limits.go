package main

import (
	"crypto/md5"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const (
	mib       = 1 << 20
	directBuf = 4 * mib // what one O_DIRECT write takes
)

// limitsSuite measures what the machine can do without us.
func limitsSuite(e *env) error {
	e.limits["md5"] = md5Rate()
	e.add(row{Name: "MD5, one core", Value: e.limits["md5"] / mib, Unit: "MiB/s"})
	for _, clients := range []int{1, 4, 16} {
		v, err := e.durableFiles(64*mib, clients, true)
		if err != nil {
			return err
		}
		e.limits[fmt.Sprintf("disk64M/%d", clients)] = v
		e.add(row{Name: fmt.Sprintf("disk, 64 MiB O_DIRECT + fdatasync, %d writers", clients), Value: v / mib, Unit: "MiB/s"})
	}
	for _, size := range []int{4 << 10, mib} {
		for _, clients := range []int{1, 16} {
			v, err := e.durableFiles(size, clients, false)
			if err != nil {
				return err
			}
			name := fmt.Sprintf("sync%s/%d", sizeName(size), clients)
			e.limits[name] = v / float64(size)
			e.add(row{Name: fmt.Sprintf("disk, file of %s + fdatasync, %d writers", sizeName(size), clients),
				Value: v / float64(size), Unit: "op/s"})
		}
	}
	return e.bareHTTP()
}

func md5Rate() float64 {
	b := make([]byte, 64*mib)
	rand.Read(b[:mib])
	h, start := md5.New(), time.Now()
	h.Write(b)
	return float64(len(b)) / time.Since(start).Seconds()
}

// durableFiles returns bytes per second of writing files of size bytes,
// synced, over and over.
func (e *env) durableFiles(size, clients int, direct bool) (float64, error) {
	buf := alignedBuffer(min(size, directBuf))
	rand.Read(buf)
	flags := os.O_CREATE | os.O_TRUNC | os.O_WRONLY
	if direct {
		flags |= syscall.O_DIRECT
	}
	return e.parallel(clients, func(client, i int) (int, error) {
		name := filepath.Join(e.dir, fmt.Sprintf("limit-%d", client))
		f, err := os.OpenFile(name, flags, 0o600)
		if err != nil {
			return 0, err
		}
		defer f.Close()
		for n := 0; n < size; n += len(buf) {
			if _, err := f.Write(buf); err != nil {
				return 0, err
			}
		}
		return size, syscall.Fdatasync(int(f.Fd()))
	})
}

// alignedBuffer returns n bytes at a multiple of 4096, as O_DIRECT wants.
func alignedBuffer(n int) []byte {
	b := make([]byte, n+4096)
	skip := int(-uintptr(unsafe.Pointer(&b[0])) & 4095)
	return b[skip : skip+n : skip+n]
}

// parallel runs fn in clients goroutines for the span and returns the sum of
// its results per second.
func (e *env) parallel(clients int, fn func(client, i int) (int, error)) (float64, error) {
	var (
		total atomic.Int64
		wg    sync.WaitGroup
		once  sync.Once
		first error
	)
	start := time.Now()
	deadline := start.Add(e.span())
	for c := range clients {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := 0; time.Now().Before(deadline) && e.ctx.Err() == nil; i++ {
				n, err := fn(c, i)
				if err != nil {
					once.Do(func() { first = err })
					return
				}
				total.Add(int64(n))
			}
		}()
	}
	wg.Wait()
	return float64(total.Load()) / time.Since(start).Seconds(), first
}

// bareHTTP measures net/http: a file server (sendfile) and a handler that
// answers bytes from memory or swallows a body.
func (e *env) bareHTTP() error {
	for _, size := range objectSizes {
		name := filepath.Join(e.dir, "bare-"+sizeName(size))
		b := make([]byte, size)
		rand.Read(b)
		if err := os.WriteFile(name, b, 0o600); err != nil {
			return err
		}
	}
	small := make([]byte, 4<<10)
	mux := http.NewServeMux()
	mux.Handle("GET /files/", http.StripPrefix("/files/", http.FileServer(http.Dir(e.dir))))
	mux.HandleFunc("GET /small", func(w http.ResponseWriter, r *http.Request) { w.Write(small) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go srv.Serve(l)
	defer srv.Close()

	client := newClient()
	get := func(url string, clients int) (float64, error) {
		return e.parallel(clients, func(int, int) (int, error) { return client.get(e.ctx, url, nil) })
	}
	base := "http://" + l.Addr().String()
	for _, size := range objectSizes {
		for _, clients := range objectClients {
			v, err := get(base+"/files/bare-"+sizeName(size), clients)
			if err != nil {
				return err
			}
			e.limits[fmt.Sprintf("http%s/%d", sizeName(size), clients)] = v / float64(size)
			e.add(row{Name: fmt.Sprintf("net/http file server, GET %s, %d clients", sizeName(size), clients),
				Value: v / float64(size), Unit: "op/s", Note: fmt.Sprintf("%.0f MiB/s", v/mib)})
		}
	}
	v, err := get(base+"/small", 64)
	e.limits["httpsmall/64"] = v / float64(len(small))
	e.add(row{Name: "net/http handler, GET 4KiB from memory, 64 clients", Value: v / float64(len(small)), Unit: "op/s"})
	return err
}

func sizeName(n int) string {
	if n >= mib {
		return fmt.Sprintf("%dMiB", n/mib)
	}
	return fmt.Sprintf("%dKiB", n>>10)
}
