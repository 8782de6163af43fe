package adversary

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"ogw/integration/testenv"
	"ogw/integration/testenv/nfsclient"
	"ogw/nfsserver"
	"ogw/nfsserver/xdr"
)

// booty is what an NFS procedure is tried on: alice's directory of mode 0700, and
// what lies in it.
type booty struct{ dir, file, link []byte }

// nfsAttack is one procedure of NFS with the arguments of an attack.
type nfsAttack struct {
	args    func(w *xdr.Writer, x booty)
	changes bool   // is refused where the export is read-only
	other   uint32 // status for another user of the same machine
	harm    string // why other is OK
}

const fileSync = 2

// sattr is a sattr3 of a mode alone.
func sattr(w *xdr.Writer) {
	w.Bool(true)
	w.Uint32(0o777)
	for range 5 { // uid, gid, size, atime, mtime
		w.Uint32(0)
	}
}

func words(w *xdr.Writer, list ...uint32) {
	for _, v := range list {
		w.Uint32(v)
	}
}

// named is a procedure whose first arguments are a directory and a name in it.
func named(name string, rest func(w *xdr.Writer, x booty)) func(*xdr.Writer, booty) {
	return func(w *xdr.Writer, x booty) {
		w.Opaque(x.dir)
		w.String(name)
		if rest != nil {
			rest(w, x)
		}
	}
}

// onFile is one whose first argument is the file.
func onFile(rest ...uint32) func(*xdr.Writer, booty) {
	return func(w *xdr.Writer, x booty) {
		w.Opaque(x.file)
		words(w, rest...)
	}
}

const noEntry = "who holds a handle may see what the mode of the thing itself gives"

// nfsAttacks has a row for each procedure of NFS.
func nfsAttacks() map[string]nfsAttack {
	plain := func(w *xdr.Writer, _ booty) { sattr(w) }
	onDir := func(rest ...uint32) func(*xdr.Writer, booty) {
		return func(w *xdr.Writer, x booty) {
			w.Opaque(x.dir)
			words(w, rest...)
		}
	}
	return map[string]nfsAttack{
		"NULL":     {harm: "names nothing"},
		"GETATTR":  {args: onFile(), harm: noEntry},
		"SETATTR":  {args: func(w *xdr.Writer, x booty) { w.Opaque(x.file); sattr(w); w.Bool(false) }, changes: true, other: nfsclient.Perm},
		"LOOKUP":   {args: named("secret", nil), other: nfsclient.Acces},
		"ACCESS":   {args: onFile(0x3f), harm: "tells that nothing is allowed"},
		"READLINK": {args: func(w *xdr.Writer, x booty) { w.Opaque(x.link) }, harm: noEntry},
		"READ":     {args: onFile(0, 0, 100), other: nfsclient.Acces},
		"WRITE": {args: func(w *xdr.Writer, x booty) {
			w.Opaque(x.file)
			words(w, 0, 0, 6, fileSync)
			w.Opaque([]byte("forged"))
		}, changes: true, other: nfsclient.Acces},
		"CREATE":      {args: named("new", func(w *xdr.Writer, _ booty) { w.Uint32(0); sattr(w) }), changes: true, other: nfsclient.Acces},
		"MKDIR":       {args: named("new", plain), changes: true, other: nfsclient.Acces},
		"SYMLINK":     {args: named("new", func(w *xdr.Writer, _ booty) { sattr(w); w.String("/") }), changes: true, other: nfsclient.Acces},
		"MKNOD":       {args: named("new", func(w *xdr.Writer, _ booty) { w.Uint32(7); sattr(w) }), changes: true, other: nfsclient.Acces}, // NF3FIFO
		"REMOVE":      {args: named("secret", nil), changes: true, other: nfsclient.Acces},
		"RMDIR":       {args: named("sub", nil), changes: true, other: nfsclient.Acces},
		"RENAME":      {args: named("secret", func(w *xdr.Writer, x booty) { w.Opaque(x.dir); w.String("stolen") }), changes: true, other: nfsclient.Acces},
		"LINK":        {args: func(w *xdr.Writer, x booty) { w.Opaque(x.file); w.Opaque(x.dir); w.String("stolen") }, changes: true, other: nfsclient.Acces},
		"READDIR":     {args: onDir(0, 0, 0, 0, 4096), other: nfsclient.Acces},
		"READDIRPLUS": {args: onDir(0, 0, 0, 0, 4096, 4096), other: nfsclient.Acces},
		"FSSTAT":      {args: onDir(), harm: "tells of the whole store"},
		"FSINFO":      {args: onDir(), harm: "tells of the whole store"},
		"PATHCONF":    {args: onDir(), harm: "tells of the whole store"},
		"COMMIT":      {args: onFile(0, 0, 0), harm: "only makes durable what others wrote"},
	}
}

// take makes booty in a directory of alice's, whose uid owner is.
func take(c *nfsClient, dir []byte) (x booty) {
	c.t.Helper()
	x.dir = dir
	st, file, err := c.Create(dir, "secret")
	c.must("CREATE", st, err)
	st, err = c.Write(file, 0, []byte("for alice"))
	c.must("WRITE", st, err)
	st, link, err := c.Symlink(dir, "link", "secret")
	c.must("SYMLINK", st, err)
	st, _, err = c.Mkdir(dir, "sub")
	c.must("MKDIR", st, err)
	x.file, x.link = file, link
	return x
}

// chmod gives what a handle names a mode.
func (c *nfsClient) chmod(fh []byte, mode uint32) {
	c.t.Helper()
	w := &xdr.Writer{}
	w.Opaque(fh)
	w.Bool(true)
	words(w, mode, 0, 0, 0, 0, 0, 0)
	st, err := c.try(setattrNumber, w.B)
	c.must("SETATTR", st, err)
}

const setattrNumber = 2

// try calls a procedure of NFS by number and returns its status.
func (c *nfsClient) try(number uint32, args []byte) (uint32, error) {
	r, err := c.Call(nfsclient.NFS, 3, number, args)
	if err != nil {
		return 0, err
	}
	st := r.Uint32()
	return st, r.Err()
}

// TestEveryNFSProcedure: each procedure that the door serves, on what is another's:
// from a machine whose export it is not, with a forged handle, from any port, by another
// user of the same machine, and through an export that is read-only.
func TestEveryNFSProcedure(t *testing.T) {
	const aliceUID, bobUID = 1111, 2222
	s := newServer(t, testenv.ServerOptions{NFS: exports + `
[[gateway.export]]
path = "/private/dir"
clients = ["127.0.0.3"]
read_only = true
squash = "none"
`})
	for _, name := range []string{"photos", "readonly", "private"} {
		s.OGW("bucket", "add", name)
	}
	stranger, alice, bob, reader := dialNFS(t, s, attacker), dialNFS(t, s, victim), dialNFS(t, s, victim), dialNFS(t, s, "127.0.0.3")
	root := dialNFS(t, s, victim)
	private := root.mount("/private")
	root.chmod(private, 0o777)
	alice.Cred.UID, alice.Cred.GID, bob.Cred.UID, bob.Cred.GID = aliceUID, aliceUID, bobUID, bobUID
	st, dir, err := alice.Mkdir(private, "dir")
	alice.must("MKDIR", st, err)
	x := take(alice, dir)
	alice.chmod(x.file, 0o600)
	alice.chmod(x.dir, 0o700)
	inView := reader.mount("/private/dir")
	read := booty{inView, reader.lookup(inView, "secret"), reader.lookup(inView, "link")}
	forge := func(fh []byte) []byte {
		fh = slices.Clone(fh)
		fh[len(fh)-1] ^= 1
		return fh
	}
	forged := booty{forge(x.dir), forge(x.file), forge(x.link)}
	state := func() string {
		st, list, err := alice.ReaddirPlus(x.dir)
		alice.must("READDIRPLUS", st, err)
		names := ""
		for name := range list {
			names += name + " "
		}
		st, data, err := alice.Read(x.file, 0, 100)
		alice.must("READ", st, err)
		return fmt.Sprint(len(names), string(data))
	}
	before := state()
	anyPort := anyPortNFS(t, s)
	rows := nfsAttacks()
	for _, p := range nfsserver.Procedures() {
		if p.Program != nfsclient.NFS {
			continue
		}
		a, ok := rows[p.Name]
		if !ok || a.args == nil && a.harm == "" || a.other == 0 && a.harm == "" {
			t.Errorf("procedure without an attack: %s", p.Name)
		}
		if a.args == nil {
			continue
		}
		for _, c := range []struct {
			who  string
			as   *nfsClient
			on   booty
			want uint32
		}{
			{"a machine that has no part in the export", stranger, x, nfsclient.Acces},
			{"any port", anyPort, x, nfsclient.Acces},
			{"who forges handles", alice, forged, nfsclient.BadHandle},
			{"another user", bob, x, a.other},
			{"a reader", reader, read, nfsclient.ROFS},
		} {
			if c.as == reader && !a.changes {
				continue
			}
			var w xdr.Writer
			a.args(&w, c.on)
			st, err := c.as.try(p.Number, w.B)
			c.as.want(p.Name+" by "+c.who, c.want, st, err)
			if after := state(); after != before {
				t.Fatalf("%s by %s: alice's directory is %s, was %s", p.Name, c.who, after, before)
			}
		}
	}
	var w xdr.Writer
	rows["ACCESS"].args(&w, x)
	r, err := bob.Call(nfsclient.NFS, 3, 4, w.B)
	if err != nil {
		t.Fatal(err)
	}
	if b := r.Rest(); len(b) < 4 || strings.Trim(string(b[len(b)-4:]), "\x00") != "" {
		t.Errorf("ACCESS allows another user %x", b)
	}
}

// anyPortNFS is a program of any user of a machine.
func anyPortNFS(t *testing.T, s *testenv.Server) *nfsClient {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(victim)}, Timeout: giveUp}
	c, err := d.Dial("tcp", s.NFS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &nfsClient{t, nfsclient.NewConn(c)}
}
