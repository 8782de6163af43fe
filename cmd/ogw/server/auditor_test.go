package server

import (
	"slices"
	"testing"

	"ogw/cmd/ogw/audit"
	"ogw/fusemount"
	"ogw/httpapi/admin"
	"ogw/httpapi/iam"
	"ogw/httpapi/s3"
	"ogw/nfsserver"
)

// Every operation of a door has a row, and no row is left of one that is gone.
func TestAuditRows(t *testing.T) {
	for door, operations := range map[string][]string{
		"admin": admin.Operations(),
		"s3":    s3.Operations(),
		"iam":   iam.Operations(),
		"rest":  {"GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS"},
		"nfs":   nfsserver.Operations(),
		"fuse":  append(fusemount.Operations(), "Mount", "Umount"),
	} {
		if len(operations) < 5 {
			t.Fatalf("%s: only %v", door, operations)
		}
		for _, op := range operations {
			if _, ok := auditRows[door][op]; !ok {
				t.Errorf("%s: operation %s has no row", door, op)
			}
		}
		for op := range auditRows[door] {
			if !slices.Contains(operations, op) {
				t.Errorf("%s: there is no operation %s", door, op)
			}
		}
	}
}

func TestPeerUID(t *testing.T) {
	for from, want := range map[string]int64{
		admin.LocalPeer(1000, 7).String(): 1000, admin.LocalPeer(0, 1).String(): 0, admin.LocalPeer(4294967295, 1).String(): 4294967295,
		"192.0.2.1:5": audit.NoUID, "unix:": audit.NoUID, "": audit.NoUID,
	} {
		if got := peerUID(from); got != want {
			t.Errorf("%q: %d, want %d", from, got, want)
		}
	}
}
