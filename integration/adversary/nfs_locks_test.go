package adversary

import (
	"strings"
	"testing"

	"ogw/integration/testenv"
	"ogw/integration/testenv/nfsclient"
	"ogw/nfsserver"
	"ogw/nfsserver/nlm"
	"ogw/nfsserver/nsm"
	"ogw/nfsserver/xdr"
)

const (
	nlmTest, nlmLock, nlmUnlock, nlmShare, nlmUnshare = 1, 2, 4, 20, 21
	// statuses of NLM
	nlmGranted, nlmDenied = 0, 1
	// victimName and victimProc are what a lock of the victim says of itself.
	victimName, victimProc = "victim.example", 7
)

// lockArgs are the arguments of a lock of the victim's, with flags before the
// caller's name and after the range as the procedure has them.
func lockArgs(fh []byte, proc uint32, before, after int) []byte {
	var w xdr.Writer
	w.Opaque([]byte("cookie"))
	for range before { // block, exclusive
		w.Uint32(1)
	}
	w.String(victimName)
	w.Opaque(fh)
	w.Opaque([]byte("owner"))
	w.Uint32(proc)
	w.Uint64(0)
	w.Uint64(10)
	for range after { // reclaim, state
		w.Uint32(0)
	}
	return w.B
}

// shareArgs are the arguments of SHARE and UNSHARE of an owner of the victim's.
func shareArgs(fh []byte, owner string) []byte {
	var w xdr.Writer
	w.Opaque([]byte("cookie"))
	w.String(victimName)
	w.Opaque(fh)
	w.String(owner)
	words(&w, 3, 3, 0) // mode, access, reclaim
	return w.B
}

// lockAttacks has the arguments with which each procedure beside NFS is tried on a
// lock of the victim; nil where a procedure takes none.
func lockAttacks(fh []byte) map[string][]byte {
	test, lock, unlock := lockArgs(fh, victimProc, 1, 0), lockArgs(fh, victimProc, 2, 2), lockArgs(fh, victimProc, 0, 0)
	cancel := lockArgs(fh, victimProc, 2, 0)
	share := shareArgs(fh, "owner")
	var path, host, res xdr.Writer
	path.String("/private")
	host.String(victimName)
	host.Uint32(3) // state
	res.Opaque([]byte("cookie"))
	res.Uint32(nlmGranted)
	return map[string][]byte{
		"NULL": nil, "MNT": path.B, "DUMP": nil, "UMNT": path.B, "UMNTALL": nil, "EXPORT": nil,
		"NLM_NULL": nil, "NLM_TEST": test, "NLM_LOCK": lock, "NLM_CANCEL": cancel, "NLM_UNLOCK": unlock, "NLM_GRANTED": test,
		"NLM_TEST_MSG": test, "NLM_LOCK_MSG": lock, "NLM_CANCEL_MSG": cancel, "NLM_UNLOCK_MSG": unlock, "NLM_GRANTED_MSG": test,
		"NLM_TEST_RES": res.B, "NLM_LOCK_RES": res.B, "NLM_CANCEL_RES": res.B, "NLM_UNLOCK_RES": res.B, "NLM_GRANTED_RES": res.B,
		"NLM_SHARE": share, "NLM_UNSHARE": share, "NLM_NM_LOCK": lock, "NLM_FREE_ALL": host.B,
		"STAT": host.B, "NOTIFY": host.B,
	}
}

// TestEveryLockProcedure: no procedure of MOUNT, NLM and NSM, called from another
// machine that takes the victim's name and its lock's owner, or from any port, gives that
// the victim's lock or share reservation, an answer about its file, or the secret of an export.
func TestEveryLockProcedure(t *testing.T) {
	const secret = "correct-horse-battery"
	s := newServer(t, testenv.ServerOptions{NFS: exports + `
[[gateway.export]]
path = "/guarded"
secret = "` + secret + `"
`})
	for _, name := range []string{"photos", "readonly", "private"} {
		s.OGW("bucket", "add", name)
	}
	v := dialNFS(t, s, victim)
	st, fh, err := v.Create(v.mount("/private"), "file")
	v.must("CREATE", st, err)
	status := func(c *nfsClient, proc uint32, args []byte) uint32 {
		t.Helper()
		r, err := c.Call(nlm.ProgramNumber, nlm.Version, proc, args)
		if err != nil {
			t.Fatal(err)
		}
		r.Opaque(100)
		return r.Uint32()
	}
	if st := status(v, nlmLock, lockArgs(fh, victimProc, 2, 2)); st != nlmGranted {
		t.Fatalf("the victim's own lock: %d", st)
	}
	if st := status(v, nlmShare, shareArgs(fh, "owner")); st != nlmGranted {
		t.Fatalf("the victim's own share reservation: %d", st)
	}
	rows := lockAttacks(fh)
	who := map[string]*nfsClient{"another machine": dialNFS(t, s, attacker), "any port": anyPortNFS(t, s)}
	for _, p := range nfsserver.Procedures() {
		if p.Program == nfsclient.NFS {
			continue
		}
		args, ok := rows[p.Name]
		if !ok {
			t.Errorf("procedure without an attack: %s", p.Name)
		}
		for name, c := range who {
			r, err := c.Call(p.Program, p.Version, p.Number, args)
			answer := ""
			if err == nil {
				answer = string(r.Rest())
			}
			if strings.Contains(answer, secret) {
				t.Errorf("%s by %s shows the secret of an export", p.Name, name)
			}
			switch p.Name { // those that answer about the file
			case "NLM_TEST", "NLM_LOCK", "NLM_NM_LOCK", "NLM_SHARE", "MNT":
				if err != nil {
					break
				}
				if p.Program == nlm.ProgramNumber {
					r.Opaque(100)
				}
				if st := r.Uint32(); st == nlmGranted || p.Name == "NLM_TEST" && st == nlmDenied {
					t.Errorf("%s by %s: status %d", p.Name, name, st)
				}
			}
			// Another process of the victim's machine sees it held.
			if st := status(v, nlmTest, lockArgs(fh, victimProc+1, 1, 0)); st != nlmDenied {
				t.Fatalf("after %s by %s the victim's lock is gone: %d", p.Name, name, st)
			}
			if st := status(v, nlmShare, shareArgs(fh, "another")); st != nlmDenied {
				t.Fatalf("after %s by %s the victim's share reservation is gone: %d", p.Name, name, st)
			}
		}
	}
	if st := status(v, nlmUnlock, lockArgs(fh, victimProc, 0, 0)); st != nlmGranted {
		t.Errorf("the victim's own UNLOCK: %d", st)
	}
	if st := status(v, nlmTest, lockArgs(fh, victimProc+1, 1, 0)); st != nlmGranted {
		t.Errorf("after it: %d", st)
	}
	if st := status(v, nlmUnshare, shareArgs(fh, "owner")); st != nlmGranted {
		t.Errorf("the victim's own UNSHARE: %d", st)
	}
	if st := status(v, nlmShare, shareArgs(fh, "another")); st != nlmGranted {
		t.Errorf("after it: %d", st)
	}
	if _, err := v.Call(nsm.ProgramNumber, nsm.Version, 0, nil); err != nil {
		t.Error(err)
	}
}
