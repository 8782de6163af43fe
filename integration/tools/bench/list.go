package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"ogw/cluster"
	"ogw/cluster/local"
	"ogw/integration/testenv/cputime"
	"ogw/vfs"
)

var listKeys = flag.Int("keys", 1_000_000, "how many keys the listing and the deletion go over")

// listSuite lists and deletes a large flat bucket over S3.
func listSuite(e *env) error {
	data := filepath.Join(e.dir, "list-data")
	begin := time.Now()
	if err := fill(e.ctx, data, "flat", *listKeys); err != nil {
		return err
	}
	e.add(row{Name: "Go API, PUT of 100 bytes, not synced, 8 writers", Unit: "op/s",
		Value: float64(*listKeys) / time.Since(begin).Seconds()})
	s, err := startServerOn(e, data)
	if err != nil {
		return err
	}
	defer s.stop()
	pid := s.cmd.Process.Pid
	spent, err := cputime.Process(pid)
	if err != nil {
		return err
	}
	begin = time.Now()
	keys, err := s.listAll(e.ctx, "flat")
	if err != nil {
		return err
	}
	took := time.Since(begin).Seconds()
	after, err := cputime.Process(pid)
	if err != nil {
		return err
	}
	if len(keys) != *listKeys {
		return fmt.Errorf("listed %d keys of %d", len(keys), *listKeys)
	}
	e.add(row{Name: fmt.Sprintf("S3 LIST of %d keys, pages of 1000", *listKeys), Value: took, Unit: "s",
		Limit: 3 * float64(*listKeys) / 1e6, LimitName: "3 s a million", Target: 1,
		Note: fmt.Sprintf("CPU of the server: %.2f s", (after - spent).Seconds())})
	spent = after
	begin = time.Now()
	if err := s.deleteAll(e.ctx, "flat", keys); err != nil {
		return err
	}
	took = time.Since(begin).Seconds()
	if after, err = cputime.Process(pid); err != nil {
		return err
	}
	e.add(row{Name: "S3 DeleteObjects, 1000 keys each, 4 clients", Unit: "op/s",
		Value: float64(len(keys)) / took, Limit: 20000, LimitName: "20k/s", Target: 1,
		Note: fmt.Sprintf("CPU of the server: %.2f s", (after - spent).Seconds())})
	return nil
}

// fill makes n objects of 100 bytes through the Go API, the fastest door.
func fill(ctx context.Context, dir, bucket string, n int) error {
	c, err := local.Open(ctx, local.Options{Dir: dir})
	if err != nil {
		return err
	}
	defer c.Close()
	fs, err := vfs.Open(ctx, c, vfs.Config{})
	if err != nil {
		return err
	}
	defer fs.Close(ctx)
	if _, err := fs.CreateBucket(ctx, bucket, vfs.Root); err != nil {
		return err
	}
	const writers = 8
	var (
		relaxed = cluster.Relaxed(ctx) // Close makes all of it durable
		wg      sync.WaitGroup
		once    sync.Once
		first   error
		body    = strings.Repeat("x", 100)
	)
	for w := range writers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := w; i < n; i += writers {
				_, err := fs.PutObject(relaxed, vfs.ObjectName{Bucket: bucket, Key: fmt.Sprintf("key-%09d", i)},
					strings.NewReader(body), vfs.PutOptions{Size: int64(len(body))})
				if err != nil {
					once.Do(func() { first = err })
					return
				}
			}
		}()
	}
	wg.Wait()
	return first
}

// listAll pages through a bucket.
func (s *server) listAll(ctx context.Context, bucket string) (keys []string, err error) {
	var page []byte
	token := ""
	for {
		q := url.Values{"list-type": {"2"}}
		if token != "" {
			q.Set("continuation-token", token)
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url("/"+bucket+"?"+q.Encode()), nil)
		if err != nil {
			return nil, err
		}
		if page, err = s.client.do(r, page[:0]); err != nil {
			return nil, err
		}
		for rest := page; ; {
			var key []byte
			if key, rest, err = element(rest, "Key"); err != nil {
				return nil, err
			}
			if key == nil {
				break
			}
			keys = append(keys, string(key))
		}
		next, _, err := element(page, "NextContinuationToken")
		if err != nil || next == nil {
			return keys, err
		}
		token = string(next)
	}
}

// deleteAll removes keys a thousand at a time with four clients.
func (s *server) deleteAll(ctx context.Context, bucket string, keys []string) error {
	const clients, batch = 4, 1000
	var (
		wg    sync.WaitGroup
		once  sync.Once
		first error
	)
	for c := range clients {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := c * batch; i < len(keys); i += clients * batch {
				var b strings.Builder
				b.WriteString("<Delete><Quiet>true</Quiet>")
				for _, k := range keys[i:min(i+batch, len(keys))] {
					b.WriteString("<Object><Key>" + k + "</Key></Object>")
				}
				b.WriteString("</Delete>")
				if _, err := s.client.send(ctx, "POST", s.url("/"+bucket+"?delete="), []byte(b.String())); err != nil {
					once.Do(func() { first = err })
					return
				}
			}
		}()
	}
	wg.Wait()
	return first
}
