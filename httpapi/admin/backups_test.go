package admin

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/julienschmidt/httprouter"

	"ogw/vfs"
)

// An instant that nobody uses any more ends in time, however often others are taken.
func TestAbandonedBackupEndsBesideOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, _ := newServer(t, nil)
		c := Local(server)
		ctx := t.Context()
		abandoned, err := c.AddBackup(ctx, AddBackup{DropSecrets: true})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(vfs.BackupLease - time.Second)
		other, err := c.AddBackup(ctx, AddBackup{DropSecrets: true})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		held, err := server.heldBackup([]httprouter.Param{{Key: "id", Value: abandoned.ID}})
		if err != nil || !held.Ended() {
			t.Errorf("an instant that was not used for longer than its lease is still held (%v)", err)
		}
		if err := c.UseBackup(ctx, abandoned.ID, UseBackup{}); err == nil {
			t.Error("it can be used")
		}
		third, err := c.AddBackup(ctx, AddBackup{DropSecrets: true})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(server.backups.list); n != 2 {
			t.Errorf("%d instants are known, and 2 are held", n)
		}
		for _, id := range []string{other.ID, third.ID} {
			if err := errors.Join(c.UseBackup(ctx, id, UseBackup{}), c.RemoveBackup(ctx, id)); err != nil {
				t.Error(err)
			}
		}
	})
}
