package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"ogw/integration/doors"
)

// sdk returns an S3 client of the AWS SDK: unlike the command line tools it
// takes every key as it is.
func (s *server) sdk() *s3.Client {
	return s.s3Door().Client
}

// awkwardKeys are legal in S3, and hard for a file system.
func awkwardKeys() []string {
	return []string{
		"a", "a/b", "a//b", "/a", "a/../b", "./x", "x/", "..", "c/.", "//", "deep///",
		strings.Repeat("n", 1000), "long/" + strings.Repeat("é", 400),
		".ogw~e~fake", ".ogw~", "sp ace+plus%25", "new\nline", "tab\tquote\"'<&>", "ünï/cödé",
	}
}

// TestAwkwardKeys puts, lists, gets and deletes keys through S3, sees, reads
// and removes them through FUSE and NFS.
func TestAwkwardKeys(t *testing.T) {
	s := newServer(t, options{})
	c, ctx := s.sdk(), context.Background()
	put := func(t *testing.T, bucket string) map[string]string {
		t.Helper()
		if _, err := c.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &bucket}); err != nil {
			t.Fatal(err)
		}
		bodies := map[string]string{}
		for i, k := range awkwardKeys() {
			bodies[k] = fmt.Sprintf("body %d", i)
			if _, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &k, Body: strings.NewReader(bodies[k])}); err != nil {
				t.Fatalf("put %q: %v", k, err)
			}
		}
		return bodies
	}
	t.Run("s3", func(t *testing.T) {
		bodies := put(t, "awkward-s3")
		wantKeys(t, c, "awkward-s3", bodies)
		for k, body := range bodies {
			out, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String("awkward-s3"), Key: &k})
			if err != nil {
				t.Fatalf("get %q: %v", k, err)
			}
			got, _ := io.ReadAll(out.Body)
			if string(got) != body {
				t.Errorf("%q holds %q, want %q", k, got, body)
			}
		}
		for k := range bodies {
			if _, err := c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String("awkward-s3"), Key: &k}); err != nil {
				t.Errorf("delete %q: %v", k, err)
			}
		}
		wantKeys(t, c, "awkward-s3", nil)
		if _, err := c.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: aws.String("awkward-s3")}); err != nil {
			t.Errorf("the bucket is not empty after all keys were deleted: %v", err)
		}
	})
	t.Run("fuse", func(t *testing.T) {
		s := s.with(t)
		bodies := put(t, "awkward-fuse")
		top := filepath.Join(s.Mount(), "awkward-fuse")
		wantBodies(t, readTree(t, top), bodies)
		entries, err := os.ReadDir(top)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			s.Command("rm", "-r", filepath.Join(top, e.Name()))
		}
		wantKeys(t, c, "awkward-fuse", nil)
	})
	t.Run("nfs", func(t *testing.T) {
		s := s.with(t)
		bodies := put(t, "awkward-nfs")
		readAndRemoveOverNFS(t, s, "awkward-nfs", bodies)
		wantKeys(t, c, "awkward-nfs", nil)
	})
	checkClean(t, s)
}

// wantKeys compares a listing, its order included, with the keys of bodies.
func wantKeys(t *testing.T, c *s3.Client, bucket string, bodies map[string]string) {
	t.Helper()
	got, err := (&doors.S3{Client: c}).Keys(bucket, "", "", 3)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]string, 0, len(bodies))
	for k := range bodies {
		want = append(want, k)
	}
	sort.Strings(want)
	if strings.Join(got, "\x00") != strings.Join(want, "\x00") {
		t.Errorf("keys of %s:\n got %q\nwant %q", bucket, got, want)
	}
}

// readTree returns the contents of all files below dir.
func readTree(t *testing.T, dir string) []string {
	t.Helper()
	var bodies []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		bodies = append(bodies, string(b))
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return bodies
}

// wantBodies wants every body of a key that is a file exactly once. Keys that
// end in "/" are directories, whose bodies a file system does not show.
func wantBodies(t *testing.T, got []string, bodies map[string]string) {
	t.Helper()
	var want []string
	for k, b := range bodies {
		if !strings.HasSuffix(k, "/") {
			want = append(want, b)
		}
	}
	sort.Strings(got)
	sort.Strings(want)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("files hold\n %q, want\n %q", got, want)
	}
}
