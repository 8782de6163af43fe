package engines

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"ogw/integration/testenv"
)

// blobServer holds the blobs of a store.
type blobServer struct {
	lines       string   // of the configuration
	place       string   // as ogw status has it
	where       []string // what ogw whereis shows of a blob
	stop, start func()   // take it away and give it back; nil where others use it, too
	victim      victim   // a server of it, for tests that nobody uses it beside
	names       func(t *testing.T) map[string]bool
	empty       func(t *testing.T) // removes all of the store
}

// victim is a server that is killed, stopped, and started again.
type victim struct {
	kill, start func()
	signal      func(syscall.Signal)
}

func s3Blobs(v *testenv.Versitygw) *blobServer {
	return &blobServer{
		lines: fmt.Sprintf("objects = \"http://%s/blobs\"\nobjects_key = %q\nobjects_secret = %q\n", v.Addr(), v.Key, v.Secret),
		place: "http://" + v.Addr() + "/blobs", where: []string{"s3://blobs/ogw/blob/", v.Addr()},
		stop: v.Kill, start: v.Start, victim: victim{v.Kill, v.Start, v.Signal},
		names: func(t *testing.T) map[string]bool { return blobNames(t, v) },
		empty: func(t *testing.T) {
			if err := os.RemoveAll(filepath.Join(v.Dir, "blobs", "ogw")); err != nil {
				t.Fatal(err)
			}
		},
	}
}

func blobNames(t *testing.T, v *testenv.Versitygw) map[string]bool {
	t.Helper()
	list, err := os.ReadDir(filepath.Join(v.Dir, "blobs", "ogw", "blob"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, e := range list {
		names[e.Name()] = true
	}
	return names
}
