package fusemount

import (
	"context"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"

	"ogw/cluster"
	"ogw/vfs"
)

// sizedBlobs are on a medium of a certain size.
type sizedBlobs struct {
	cluster.Blobs
	usage cluster.Usage
}

func (b sizedBlobs) Usage(context.Context) (cluster.Usage, error) { return b.usage, nil }

// TestStatFS: what is kept back is not free for programs, and not used either.
func TestStatFS(t *testing.T) {
	c := newCluster(t)
	c.Blobs = sizedBlobs{c.Blobs, cluster.Usage{Total: 1000 << 12, Used: 300 << 12, Free: 100 << 12}}
	fs, err := vfs.Open(bg, c, vfs.Config{Logger: testLogger(t)})
	must(t, err)
	defer c.Close()
	defer fs.Close(bg)
	raw := newRawFS(bg, namespaceOf(fs), Options{Logger: testLogger(t)}.withDefaults(true))
	var out fuse.StatfsOut
	in := header(1, vfs.RootIno)
	if status := raw.StatFs(nil, &in, &out); !status.Ok() || out.Blocks != 1000 || out.Bfree != 700 || out.Bavail != 100 {
		t.Errorf("%v %+v", status, out)
	}
}
