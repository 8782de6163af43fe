package integration

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// door writes and reads one file.
type door struct {
	name  string
	write func(path, body string) error
	read  func(path string) (string, error)
}

// doors returns every door of s, the object doors first, and the mount;
// paths are "bucket/key".
func doors(t *testing.T, s *server) ([]door, string) {
	mnt := s.mount()
	c, ctx := s.sdk(), context.Background()
	target := s.nfsTarget(t, "/")
	return []door{
		{"s3", func(p, body string) error {
			b, k, _ := strings.Cut(p, "/")
			_, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: &b, Key: &k, Body: strings.NewReader(body)})
			return err
		}, func(p string) (string, error) {
			b, k, _ := strings.Cut(p, "/")
			out, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: &b, Key: &k})
			if err != nil {
				return "", err
			}
			defer out.Body.Close()
			got, err := io.ReadAll(out.Body)
			return string(got), err
		}},
		{"rest", func(p, body string) error {
			return restPut("http://"+s.rest+"/"+p, body)
		}, func(p string) (string, error) {
			return restGet("http://" + s.rest + "/" + p)
		}},
		{"fuse", func(p, body string) error {
			return os.WriteFile(filepath.Join(mnt, p), []byte(body), 0o644)
		}, func(p string) (string, error) {
			b, err := os.ReadFile(filepath.Join(mnt, p))
			return string(b), err
		}},
		{"nfs", func(p, body string) error {
			f, err := target.OpenFile(p, 0o644)
			if err != nil {
				return err
			}
			if err := target.Setattr(p, truncateTo(0)); err != nil {
				return err
			}
			if _, err := f.Write([]byte(body)); err != nil {
				return err
			}
			return f.Close()
		}, func(p string) (string, error) {
			f, err := target.Open(p)
			if err != nil {
				return "", err
			}
			defer f.Close()
			b, err := io.ReadAll(f)
			return string(b), err
		}},
	}, mnt
}

// TestCoherence changes one file through each door in turn: every other door
// shows the change at once, whatever it had cached.
func TestCoherence(t *testing.T) {
	s := newServer(t, options{})
	s.aws("s3", "mb", "s3://coherence")
	all, _ := doors(t, s)
	const rounds = 20
	for round := range rounds {
		for _, w := range all {
			// Lengths shrink and grow, so that a stale size shows.
			body := fmt.Sprintf("%s wrote this in round %d %s", w.name, round, strings.Repeat("x", (round*7919)%50000))
			if err := w.write("coherence/dir/file", body); err != nil {
				t.Fatalf("%s: write: %v", w.name, err)
			}
			for _, r := range all {
				got, err := r.read("coherence/dir/file")
				if err != nil || got != body {
					t.Fatalf("round %d: %s wrote %d bytes, %s reads %d bytes (%.40q…), error %v",
						round, w.name, len(body), r.name, len(got), got, err)
				}
			}
		}
	}
	checkClean(t, s)
}
