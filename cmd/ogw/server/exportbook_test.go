package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/cmd/ogw/config"
	"ogw/httpapi/admin"
	"ogw/httpapi/apierr"
	"ogw/nfsserver"
	"ogw/vfs"
)

// bookOver is the book of a process over a store that others share.
func bookOver(t *testing.T, disk *mem.Disk, g config.Gateway) (*exportBook, *nfsserver.Server) {
	t.Helper()
	return bookOn(t, mem.New(mem.Options{Disk: disk}), g)
}

func bookOn(t *testing.T, store *cluster.Cluster, g config.Gateway) (*exportBook, *nfsserver.Server) {
	t.Helper()
	ctx := context.Background()
	fs, err := vfs.Open(ctx, store, vfs.Config{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	s, err := nfsserver.New(nfsserver.Config{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	b := newExportBook(fs, slog.New(slog.NewTextHandler(io.Discard, nil)), []exportGateway{{g, s}})
	if err := b.open(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.close()
		if err := errors.Join(s.Shutdown(ctx), fs.Close(ctx), store.Close()); err != nil {
			t.Error(err)
		}
	})
	return b, s
}

// TestExportBook keeps what was added across processes, and the secrets out.
func TestExportBook(t *testing.T) {
	ctx, disk := context.Background(), mem.NewDisk()
	b, s := bookOver(t, disk, everyInterface)
	if n := len(s.Exports()); n != 0 {
		t.Errorf("a gateway that others reach exports %d directories by itself", n)
	}
	x, err := b.Add(ctx, admin.AddExport{Path: "/", Secret: true, Clients: []string{"10.1.2.3/8"}, ReadOnly: true})
	if err != nil || x.Secret == "" || len(x.Clients) != 1 || x.Clients[0] != "10.0.0.0/8" || x.Squash != "root" {
		t.Fatalf("%+v %v", x, err)
	}
	if l := s.Exports(); len(l) != 1 || l[0].Path != "/" || l[0].SecretSum != nfsserver.SecretSum(x.Secret) || !l[0].ReadOnly {
		t.Errorf("not in effect at once: %+v", l)
	}
	text, err := b.fs.Setting(ctx, exportSetting)
	if err != nil || len(text) == 0 || strings.Contains(string(text), x.Secret) {
		t.Errorf("stored: %s %v", text, err)
	}
	if l, err := b.List(ctx); err != nil || len(l) != 1 || l[0].ID != x.ID || l[0].Secret != "" || !l[0].NeedsSecret {
		t.Errorf("%+v %v", l, err)
	}

	again, s2 := bookOver(t, disk, config.Gateway{Name: "nfs", Protocol: "nfs", Listen: "127.0.0.1:2049"})
	if l := s2.Exports(); len(l) != 2 || l[0].Squash != nfsserver.SquashNone || l[1].Name != x.ID {
		t.Errorf("after a restart: %+v", l)
	}
	if err := again.Revoke(ctx, x.ID); err != nil {
		t.Fatal(err)
	}
	if err := b.refresh(ctx); err != nil || len(s.Exports()) != 0 {
		t.Errorf("another process goes on: %v %+v", err, s.Exports())
	}
	if err := again.Revoke(ctx, x.ID); !errors.Is(err, vfs.ErrNotExist) || !strings.HasPrefix(err.Error(), "no export was added with the ID") {
		t.Error(err)
	}
	if _, err := b.Add(ctx, admin.AddExport{Path: "/"}); !errors.Is(err, apierr.ErrBadRequest) {
		t.Errorf("for everyone: %v", err)
	}
	err = b.fs.UpdateSetting(ctx, exportSetting, func([]byte) ([]byte, error) { return []byte(`{"version":99}`), nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := b.refresh(ctx); !errors.Is(err, vfs.ErrNotSupported) {
		t.Errorf("a newer format: %v", err)
	}
}

// lateKV is a store whose answers are late, as on a busy machine.
type lateKV struct {
	cluster.KV
	updated func() // after each Update, if set
	fails   error  // of each View, if set
}

func (l *lateKV) View(ctx context.Context, fn func(cluster.Reader) error) error {
	err := l.KV.View(ctx, fn)
	time.Sleep(rand.N(time.Millisecond))
	return errors.Join(err, l.fails)
}

func (l *lateKV) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	err := l.KV.Update(ctx, fn)
	if l.updated != nil {
		l.updated()
	}
	return err
}

// everyInterface is a gateway that exports nothing by itself.
var everyInterface = config.Gateway{Name: "nfs", Protocol: "nfs", Listen: "0.0.0.0:2049"}

// TestExportsAtOnce: however changes overtake one another, what the servers export in
// the end is what is stored.
func TestExportsAtOnce(t *testing.T) {
	const rounds, clients = 20, 16
	store := mem.New(mem.Options{})
	store.KV = &lateKV{KV: store.KV}
	b, s := bookOn(t, store, everyInterface)
	atOnce := func(do func(i int) error) {
		var wait sync.WaitGroup
		for i := range clients {
			wait.Go(func() {
				if err := do(i); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
	}
	for round := range rounds {
		var added [clients]admin.Export
		atOnce(func(i int) (err error) {
			added[i], err = b.Add(t.Context(), admin.AddExport{Path: "/", Clients: []string{"10.0.0.0/8"}})
			return err
		})
		if n := len(s.Exports()); n != clients {
			t.Errorf("round %d: %d exports, %d were added", round, n, clients)
		}
		atOnce(func(i int) error { return b.Revoke(t.Context(), added[i].ID) })
		if left, err := b.List(t.Context()); err != nil || len(left) > 0 || len(s.Exports()) > 0 {
			t.Errorf("round %d: all were revoked; stored: %+v %v; exported: %+v", round, left, err, s.Exports())
		}
	}
}

// TestRevokeUnanswered: an export that is not stored any more is not mounted, also if
// the client that revoked it went away meanwhile.
func TestRevokeUnanswered(t *testing.T) {
	store := mem.New(mem.Options{})
	kv := &lateKV{KV: store.KV}
	store.KV = kv
	b, s := bookOn(t, store, everyInterface)
	x, err := b.Add(t.Context(), admin.AddExport{Path: "/", Clients: []string{"10.0.0.0/8"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	kv.updated = leave
	_ = b.Revoke(ctx, x.ID) // nobody reads the answer
	if left := s.Exports(); len(left) > 0 {
		t.Errorf("still exported: %+v", left)
	}
	// And what escaped a process before goes with the next try.
	b.applied = ""
	if err := s.SetExports([]nfsserver.Export{{Path: "/"}}); err != nil {
		t.Fatal(err)
	}
	if err := b.Revoke(t.Context(), x.ID); !errors.Is(err, vfs.ErrNotExist) || len(s.Exports()) > 0 {
		t.Errorf("second try: %v; exported: %+v", err, s.Exports())
	}
}

// TestAddUnshown: an export that is stored is answered with its secret, also if the servers
// could not be notified of it.
func TestAddUnshown(t *testing.T) {
	store := mem.New(mem.Options{})
	kv := &lateKV{KV: store.KV}
	store.KV = kv
	b, s := bookOn(t, store, everyInterface)
	kv.updated = func() { kv.fails = cluster.ErrUnavailable }
	x, err := b.Add(t.Context(), admin.AddExport{Path: "/", Secret: true})
	if err != nil || x.Secret == "" || x.Pending == "" || len(s.Exports()) > 0 {
		t.Errorf("%+v %v; exported: %+v", x, err, s.Exports())
	}
	kv.updated, kv.fails = nil, nil
	if list, err := b.List(t.Context()); err != nil || len(list) != 1 || list[0].ID != x.ID || list[0].Pending != "" {
		t.Errorf("%+v %v", list, err)
	}
	if err := b.refresh(t.Context()); err != nil || len(s.Exports()) != 1 {
		t.Errorf("%v; exported: %+v", err, s.Exports())
	}
}
