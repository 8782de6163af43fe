package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

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
	ctx := context.Background()
	store := mem.New(mem.Options{Disk: disk})
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
	open := config.Gateway{Name: "nfs", Protocol: "nfs", Listen: "0.0.0.0:2049"}
	b, s := bookOver(t, disk, open)
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
