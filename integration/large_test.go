package integration

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"ogw/cluster"
	"ogw/cluster/local"
	"ogw/integration/testenv"
	"ogw/vfs"
)

const (
	largeFiles = 1_000_000
	gib        = 1 << 30
	// maxResidentBytes is what the process may hold while a large object
	// passes through.
	maxResidentBytes = 512 << 20
	listLimit        = 10 * time.Second
	renameLimit      = 10 * time.Millisecond
	// spaceLimit is how long the space of deleted objects may take to come
	// back, and spaceSlack what an empty store may hold: segments ready to be
	// written, logs.
	spaceLimit = time.Minute
	spaceSlack = 320 << 20
)

func needLarge(t *testing.T) {
	t.Helper()
	if os.Getenv("OGW_TEST_LARGE") == "" {
		t.Skip("set OGW_TEST_LARGE=1 (make test-large): takes minutes and 40 GiB of disk")
	}
}

// fill makes n objects of some bytes in one flat bucket directly through the
// Go API, which is the fastest door.
func fill(t *testing.T, dir, bucket, prefix string, n int, size int64) {
	t.Helper()
	ctx := context.Background()
	c, err := local.Open(ctx, local.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fs, err := vfs.Open(ctx, c, vfs.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer fs.Close(ctx)
	if _, err := fs.CreateBucket(ctx, bucket, vfs.Root); err != nil {
		t.Fatal(err)
	}
	const writers = 8
	relaxed := cluster.Relaxed(ctx) // Close makes all of it durable
	var wg sync.WaitGroup
	for w := range writers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			body := strings.Repeat("x", int(size))
			for i := w; i < n; i += writers {
				key := fmt.Sprintf("%s%08d", prefix, i)
				if _, err := fs.PutObject(relaxed, vfs.ObjectName{Bucket: bucket, Key: key}, strings.NewReader(body), vfs.PutOptions{Size: size}); err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	wg.Wait()
}

// TestLargeNamespace holds a million files: restart after a kill, listing,
// memory, and the rename of a directory with all of them below.
func TestLargeNamespace(t *testing.T) {
	needLarge(t)
	data := filepath.Join(testenv.TempDir(t), "data")
	begin := time.Now()
	fill(t, data, "million", "dir/f", largeFiles, 100)
	t.Logf("made %d files in %v", largeFiles, time.Since(begin))

	s := newServer(t, options{Data: data})
	s.Kill()
	took := s.Start()
	t.Logf("restart after a kill with %d files: %v", largeFiles, took)
	if took > restartLimit {
		t.Errorf("restart took %v, want less than %v", took, restartLimit)
	}
	before, cpu := residentBytes(t, s), cpuTime(t, s)
	begin = time.Now()
	if n := listAll(t, s, "million", "dir/"); n != largeFiles {
		t.Errorf("listed %d keys", n)
	}
	took = time.Since(begin)
	after := residentBytes(t, s)
	t.Logf("listed %d keys in pages of 1000 in %v, of which the server computed %v; resident before %d MiB, after %d MiB",
		largeFiles, took, cpuTime(t, s)-cpu, before>>20, after>>20)
	if took > listLimit {
		t.Errorf("listing took %v, want less than %v", took, listLimit)
	}
	if after > maxResidentBytes {
		t.Errorf("the process holds %d MiB, want at most %d", after>>20, maxResidentBytes>>20)
	}
	mnt := s.Mount()
	took = renameLimit
	for i, name := range []string{"moved", "dir", "moved"} {
		begin = time.Now()
		if err := os.Rename(filepath.Join(mnt, "million", []string{"dir", "moved"}[i%2]), filepath.Join(mnt, "million", name)); err != nil {
			t.Fatal(err)
		}
		t.Logf("renamed a directory of %d files in %v", largeFiles, time.Since(begin))
		took = min(took, time.Since(begin)) // the machine may have other work
	}
	if took >= renameLimit {
		t.Errorf("each rename took more than %v", renameLimit)
	}
	out, err := s.sdk().ListObjectsV2(context.Background(), &s3.ListObjectsV2Input{
		Bucket: aws.String("million"), MaxKeys: aws.Int32(1)})
	if err != nil || *out.Contents[0].Key != "moved/f00000000" {
		t.Errorf("first key after the rename: %v %v", out, err)
	}
}

// listAll counts the keys of a bucket with a client that does no more than
// it must: with one that decodes the XML, most of the time would be its own.
func listAll(t *testing.T, s *server, bucket, prefix string) (n int) {
	t.Helper()
	q := url.Values{"list-type": {"2"}, "prefix": {prefix}}
	for {
		page := s.signedRequest(t, http.MethodGet, "/"+bucket+"?"+q.Encode(), nil)
		n += bytes.Count(page, []byte("<Key>"))
		_, rest, more := bytes.Cut(page, []byte("<NextContinuationToken>"))
		if !more {
			return n
		}
		token, _, _ := bytes.Cut(rest, []byte("<"))
		q.Set("continuation-token", string(token))
	}
}

// signedRequest sends a request to the S3 gateway and returns the answer.
func (s *server) signedRequest(t *testing.T, method, path string, body []byte) []byte {
	t.Helper()
	r, err := http.NewRequest(method, "http://"+s.S3+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	const unsigned = "UNSIGNED-PAYLOAD"
	r.Header.Set("X-Amz-Content-Sha256", unsigned)
	creds := aws.Credentials{AccessKeyID: s.KeyID, SecretAccessKey: s.Secret}
	if err := v4.NewSigner().SignHTTP(r.Context(), creds, r, unsigned, "s3", "us-east-1", time.Now()); err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s %v\n%.1000s", method, path, resp.Status, err, b)
	}
	return b
}

// TestLargeDelete removes a million objects of some bytes and many that fill
// segments, a thousand in a request, and waits for their space.
func TestLargeDelete(t *testing.T) {
	needLarge(t)
	for _, x := range []struct {
		name string
		n    int
		size int64
	}{
		{"100 bytes", largeFiles, 100}, // all of it is less than spaceSlack
		{"32 KiB", 100_000, 32 << 10},
	} {
		t.Run(x.name, func(t *testing.T) {
			data := filepath.Join(testenv.TempDir(t), "data")
			fill(t, data, "doomed", "f", x.n, x.size)
			s := newServer(t, options{Data: data})
			full := diskUsage(t, data)
			begin := time.Now()
			deleteAll(t, s, "doomed", "f", x.n)
			took := time.Since(begin)
			t.Logf("deleted %d objects in %v, %.0f/s", x.n, took, float64(x.n)/took.Seconds())
			if n := listAll(t, s, "doomed", ""); n != 0 {
				t.Errorf("%d keys are left", n)
			}
			for end := time.Now().Add(spaceLimit); ; time.Sleep(time.Second) {
				left := diskUsage(t, data)
				if left <= full/10+spaceSlack {
					t.Logf("%d of %d MiB are left %v after the last delete", left>>20, full>>20, time.Since(begin)-took)
					return
				}
				if time.Now().After(end) {
					t.Fatalf("%d of %d MiB are left after %v", left>>20, full>>20, spaceLimit)
				}
			}
		})
	}
}

// deleteAll removes the objects that fill made, with four clients.
func deleteAll(t *testing.T, s *server, bucket, prefix string, n int) {
	t.Helper()
	const clients, batch = 4, 1000
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for i := c * batch; i < n; i += clients * batch {
				b := []byte("<Delete><Quiet>true</Quiet>")
				for k := i; k < min(i+batch, n); k++ {
					b = fmt.Appendf(b, "<Object><Key>%s%08d</Key></Object>", prefix, k)
				}
				answer := s.signedRequest(t, http.MethodPost, "/"+bucket+"?delete=", append(b, "</Delete>"...))
				if bytes.Contains(answer, []byte("<Error>")) {
					t.Errorf("%.500s", answer)
					return
				}
			}
		})
	}
	wg.Wait()
}

// diskUsage is what the files below dir take of the disk.
func diskUsage(t *testing.T, dir string) (total int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		var st syscall.Stat_t
		if err == nil {
			err = syscall.Lstat(path, &st)
		}
		if errors.Is(err, os.ErrNotExist) {
			return nil // removed meanwhile
		}
		total += st.Blocks * 512
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return total
}

// cpuTime is what the server has computed so far.
func cpuTime(t *testing.T, s *server) time.Duration {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.Process.PID()))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), ") ") // the name may hold spaces
	f := strings.Fields(rest)
	if len(f) < 13 {
		t.Fatalf("stat of the server: %q", b)
	}
	user, _ := strconv.ParseInt(f[11], 10, 64)
	system, _ := strconv.ParseInt(f[12], 10, 64)
	const ticks = 100 // a second, on every Linux that runs Go
	return time.Duration(user+system) * time.Second / ticks
}

// residentBytes is the server's resident set.
func residentBytes(t *testing.T, s *server) int64 { return procStatus(t, s, "VmRSS") }

// peakBytes is the largest resident set that the server had.
func peakBytes(t *testing.T, s *server) int64 { return procStatus(t, s, "VmHWM") }

func procStatus(t *testing.T, s *server, field string) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Process.PID()))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range strings.Split(string(b), "\n") {
		if f := strings.Fields(l); len(f) >= 2 && f[0] == field+":" {
			kb, _ := strconv.ParseInt(f[1], 10, 64)
			return kb << 10
		}
	}
	t.Fatalf("no %s", field)
	return 0
}

// pattern is a body that is cheap to make and differs in every block.
type pattern struct{ off, size int64 }

func (p *pattern) Read(b []byte) (int, error) {
	if p.off >= p.size {
		return 0, io.EOF
	}
	n := int(min(int64(len(b)), p.size-p.off))
	for i := range b[:n] {
		o := p.off + int64(i)
		b[i] = byte(o) ^ byte(o>>12) ^ byte(o>>20)
	}
	p.off += int64(n)
	return n, nil
}

func (p *pattern) Seek(off int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
		p.off = off
	case io.SeekCurrent:
		p.off += off
	case io.SeekEnd:
		p.off = p.size + off
	}
	return p.off, nil
}

// TestLargeObjects passes 5 GiB in one PUT and 20 GiB in parts through the
// S3 gateway and reads them back, in bounded memory.
func TestLargeObjects(t *testing.T) {
	needLarge(t)
	s := newServer(t, options{})
	c, ctx := s.sdk(), context.Background()
	bucket := "large"
	if _, err := c.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &bucket}); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	body := &pattern{size: 5 * gib}
	if _, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: aws.String("single"), Body: body,
		ContentLength: aws.Int64(body.size)}); err != nil {
		t.Fatal(err)
	}
	t.Logf("PUT of 5 GiB: %v, peak %d MiB", time.Since(begin), peakBytes(t, s)>>20)
	readBack(t, c, bucket, "single", 5*gib)

	begin = time.Now()
	putParts(t, c, bucket, "parts", 20, gib)
	t.Logf("20 parts of 1 GiB: %v, peak %d MiB", time.Since(begin), peakBytes(t, s)>>20)
	readBack(t, c, bucket, "parts", 20*gib)
	if peak := peakBytes(t, s); peak > maxResidentBytes {
		t.Errorf("the process held %d MiB, want at most %d", peak>>20, maxResidentBytes>>20)
	}
}

func putParts(t *testing.T, c *s3.Client, bucket, key string, parts int, size int64) {
	t.Helper()
	ctx := context.Background()
	up, err := c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &bucket, Key: &key})
	if err != nil {
		t.Fatal(err)
	}
	done := make([]types.CompletedPart, parts)
	var wg sync.WaitGroup
	slots := make(chan struct{}, 4)
	for i := range parts {
		wg.Add(1)
		slots <- struct{}{}
		go func() {
			defer func() { <-slots; wg.Done() }()
			n := int32(i + 1)
			// Parts begin where they lie in the whole, so that readBack fits.
			body := io.NewSectionReader(patternAt{}, int64(i)*size, size)
			out, err := c.UploadPart(ctx, &s3.UploadPartInput{Bucket: &bucket, Key: &key, UploadId: up.UploadId,
				PartNumber: &n, Body: body, ContentLength: &size})
			if err != nil {
				t.Error(err)
				return
			}
			done[i] = types.CompletedPart{PartNumber: &n, ETag: out.ETag, ChecksumCRC32: out.ChecksumCRC32}
		}()
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	if _, err := c.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{Bucket: &bucket, Key: &key,
		UploadId: up.UploadId, MultipartUpload: &types.CompletedMultipartUpload{Parts: done}}); err != nil {
		t.Fatal(err)
	}
}

// patternAt is pattern as an io.ReaderAt without an end.
type patternAt struct{}

func (patternAt) ReadAt(b []byte, off int64) (int, error) {
	p := pattern{off: off, size: 1 << 62}
	return p.Read(b)
}

// readBack compares an object with the pattern by digest.
func readBack(t *testing.T, c *s3.Client, bucket, key string, size int64) {
	t.Helper()
	begin := time.Now()
	out, err := c.GetObject(context.Background(), &s3.GetObjectInput{Bucket: &bucket, Key: &key})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Body.Close()
	got, want := md5.New(), md5.New()
	n, err := io.Copy(got, out.Body)
	if err != nil || n != size {
		t.Fatalf("%s: read %d of %d bytes: %v", key, n, size, err)
	}
	t.Logf("GET of %s: %v", key, time.Since(begin))
	if _, err := io.Copy(want, &pattern{size: size}); err != nil {
		t.Fatal(err)
	}
	if g, w := hex.EncodeToString(got.Sum(nil)), hex.EncodeToString(want.Sum(nil)); g != w {
		t.Errorf("%s: digest %s, want %s", key, g, w)
	}
}
