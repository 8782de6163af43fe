package nfsserver

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"ogw/nfsserver/rpc"
	"ogw/vfs"
)

// Squash selects whose rights a client's users have.
type Squash string

const (
	SquashRoot Squash = "root" // user 0 becomes the anonymous one (the default)
	SquashAll  Squash = "all"  // everyone becomes the anonymous one
	SquashNone Squash = "none" // users are who they say they are
)

// DefaultAnonID is the anonymous user and group, "nobody" by convention.
const DefaultAnonID = 65534

// Export is a directory that clients may mount, and what they may do there.
type Export struct {
	// Name distinguishes exports of one path and secret, which may then differ
	// in clients and rights. It is part of the handles made through the
	// export: another name makes them stale.
	Name string
	// Path of the directory: "/", "/bucket" or "/bucket/directory".
	Path string
	// Networks that may use the export; empty: every client that can connect.
	Networks []netip.Prefix
	ReadOnly bool
	// Insecure takes calls from any port. Without it they must come from one
	// below 1024, which only the superuser of the client's machine can use: its
	// kernel tells the truth about the caller, and programs of its users cannot
	// ask by themselves.
	Insecure bool
	Squash   Squash
	// AnonUID and AnonGID of the anonymous user; nil: DefaultAnonID.
	AnonUID *uint32
	AnonGID *uint32
	// Secret, if set, must stand behind the path when mounting:
	// host:/bucket@SECRET. Taking the export away, or giving it another
	// secret, ends the access of those who mounted with it. It has MinSecret
	// characters at the least.
	Secret string
	// SecretSum is SecretSum(secret) in hexadecimal, for those who keep no
	// secrets; Secret must be empty then.
	SecretSum string
	// Expires, if set, ends the access of everyone at that time.
	Expires time.Time
}

// export is an Export in use.
type export struct {
	Export
	id      uint32
	secret  string // its sum, "" for none
	anonUID uint32
	anonGID uint32
	root    atomic.Pointer[exportRoot]
}

// exportTable is an immutable set of exports.
type exportTable struct {
	list []*export
	byID map[uint32]*export
}

func newExportTable(list []Export) (*exportTable, error) {
	t := &exportTable{byID: make(map[uint32]*export)}
	for _, e := range list {
		x, err := newExport(e)
		if err != nil {
			return nil, err
		}
		if t.byID[x.id] != nil {
			return nil, fmt.Errorf("nfs: export %s stands twice with the same name and secret", x.Path)
		}
		t.byID[x.id] = x
		t.list = append(t.list, x)
	}
	return t, nil
}

func newExport(e Export) (*export, error) {
	if !strings.HasPrefix(e.Path, "/") {
		return nil, fmt.Errorf("nfs: export path %q does not begin with /", e.Path)
	}
	if len(e.Path) > maxMountPath/2 || len(e.Secret) > maxMountPath/4 {
		return nil, fmt.Errorf("nfs: export path or secret of %.40q is too long", e.Path)
	}
	if e.Secret != "" && len(e.Secret) < MinSecret {
		return nil, fmt.Errorf("nfs: the secret of export %s has %d characters: at least %d are needed", e.Path, len(e.Secret), MinSecret)
	}
	if strings.ContainsAny(e.Secret, "/@\x00") {
		return nil, fmt.Errorf("nfs: secret of export %s holds a slash, an @ or a NUL", e.Path)
	}
	if e.SecretSum != "" && (e.Secret != "" || len(e.SecretSum) != sha256.Size*2) {
		return nil, fmt.Errorf("nfs: export %s has a secret twice, or half of one", e.Path)
	}
	e.Path = path.Clean(e.Path)
	switch e.Squash {
	case "":
		e.Squash = SquashRoot
	case SquashRoot, SquashAll, SquashNone:
	default:
		return nil, fmt.Errorf("nfs: squash %q of export %s is none of root, all, none", e.Squash, e.Path)
	}
	x := &export{Export: e, anonUID: DefaultAnonID, anonGID: DefaultAnonID}
	if e.AnonUID != nil {
		x.anonUID = *e.AnonUID
	}
	if e.AnonGID != nil {
		x.anonGID = *e.AnonGID
	}
	if x.anonUID == vfs.NoID || x.anonGID == vfs.NoID {
		return nil, fmt.Errorf("nfs: %d is neither a uid nor a gid that squashed users of export %s can have", uint32(vfs.NoID), e.Path)
	}
	x.secret = e.SecretSum
	if e.Secret != "" {
		x.secret = SecretSum(e.Secret)
	}
	id := e.Path + "\x00" + x.secret
	if e.Name != "" {
		id += "\x00" + e.Name
	}
	sum := sha256.Sum256([]byte(id))
	x.id = binary.BigEndian.Uint32(sum[:])
	return x, nil
}

// CheckExport returns what is wrong with an export.
func CheckExport(e Export) error {
	_, err := newExport(e)
	return err
}

// reservedPorts are those below it (IPPORT_RESERVED).
const reservedPorts = 1024

// allows reports whether a call from there may use the export now.
func (x *export) allows(client netip.AddrPort, now time.Time) bool {
	return x.refuses(client, now) == nil
}

// refuses returns why a call from there may not use the export now, or nil.
func (x *export) refuses(client netip.AddrPort, now time.Time) error {
	if err := x.closed(client.Addr(), now); err != nil {
		return err
	}
	if !x.Insecure && client.Port() >= reservedPorts {
		return fmt.Errorf("%w: export %s takes calls from ports below %d only, this one came from %d (insecure = true takes them all)",
			ErrAcces, x.Path, reservedPorts, client.Port())
	}
	return nil
}

// closed returns why the export is not there for an address now, or nil.
func (x *export) closed(client netip.Addr, now time.Time) error {
	if !x.Expires.IsZero() && !now.Before(x.Expires) {
		return fmt.Errorf("%w: export %s expired at %s", ErrAcces, x.Path, x.Expires.UTC().Format(time.RFC3339))
	}
	if !x.inNetworks(client) {
		return fmt.Errorf("%w: the client is in no network of export %s", ErrAcces, x.Path)
	}
	return nil
}

func (x *export) inNetworks(client netip.Addr) bool {
	if len(x.Networks) == 0 {
		return true
	}
	client = client.WithZone("") // of a link-local address; no network has one
	for _, n := range x.Networks {
		if n.Contains(client) {
			return true
		}
	}
	return false
}

// allows reports whether any export is open to a client, so that others are
// turned away before they cost anything.
func (t *exportTable) allows(client netip.Addr) bool {
	for _, x := range t.list {
		if x.inNetworks(client) {
			return true
		}
	}
	return false
}

// trusts reports whether a call from there that names no file is to be believed:
// it came from a reserved port, or the client's machine may use others.
func (t *exportTable) trusts(client netip.AddrPort, now time.Time) bool {
	if client.Port() < reservedPorts {
		return true
	}
	for _, x := range t.list {
		if x.Insecure && x.closed(client.Addr(), now) == nil {
			return true
		}
	}
	return false
}

// find returns the export that a client means by the path of a MNT call, and
// the path below it that the client wants: the export's own, or a directory
// within (RFC 1813 section 5.2.1 leaves that open; kernels' servers allow it).
// The longest export path that the client may use wins. The error names the
// operator why none does; it holds no secret.
func (t *exportTable) find(dirpath string, client netip.AddrPort, now time.Time) (x *export, dir string, err error) {
	dir, secret := cutSecret(dirpath)
	err = fmt.Errorf("%w: no export has this path", ErrNoEnt)
	for _, want := range []struct{ dir, secret string }{{dir, secret}, {dirpath, ""}} {
		clean, sum := path.Clean("/"+want.dir), ""
		if want.secret != "" {
			sum = SecretSum(want.secret)
		}
		for _, e := range t.list {
			if !within(clean, e.Path) || x != nil && len(e.Path) <= len(x.Path) {
				continue
			}
			if !e.hasSecret(sum) {
				if e.secret != "" && !errors.Is(err, ErrAcces) {
					err = e.secretMissing(secret)
				}
				continue
			}
			if why := e.refuses(client, now); why != nil {
				err = why
				continue
			}
			x, dir = e, clean
		}
		if x != nil {
			return x, dir, nil
		}
	}
	return nil, "", err
}

// hasSecret compares in constant time; sum is "" for no secret.
func (x *export) hasSecret(sum string) bool {
	return subtle.ConstantTimeCompare([]byte(x.secret), []byte(sum)) == 1
}

// tried returns the longest path of the exports at whose secrets a MNT of
// dirpath is an attempt, "" if it is none, and whether it has that of one.
func (t *exportTable) tried(dirpath string) (account string, right bool) {
	dir, secret := cutSecret(dirpath)
	if secret == "" {
		return "", false
	}
	clean, sum := path.Clean("/"+dir), SecretSum(secret)
	for _, x := range t.list {
		if x.secret == "" || !within(clean, x.Path) {
			continue
		}
		right = x.hasSecret(sum) || right
		if len(x.Path) > len(account) {
			account = x.Path
		}
	}
	return account, right
}

// secretMissing shows the operator what a client got wrong: for the client,
// there is no such export.
func (x *export) secretMissing(given string) error {
	if given == "" {
		return fmt.Errorf("%w: export %s needs its secret in the path", ErrNoEnt, x.Path)
	}
	return fmt.Errorf("%w: wrong secret for export %s", ErrNoEnt, x.Path)
}

func within(dir, root string) bool {
	return dir == root || root == "/" || strings.HasPrefix(dir, root+"/")
}

// cred fills in whose rights a call has. Without AUTH_SYS nobody is known, and vfs.NoID
// is nobody's: files of such a user could not be shown by any kernel.
func (x *export) cred(to *vfs.Cred, from *rpc.Cred) {
	anon := x.Squash == SquashAll || from.Flavor != rpc.AuthUnix || from.UID == vfs.NoID
	if anon || x.Squash == SquashRoot && from.UID == 0 {
		*to = *vfs.NewCred(x.anonUID, x.anonGID)
		return
	}
	for i, g := range from.GIDs {
		from.GIDs[i] = x.group(g)
	}
	*to = *vfs.NewCred(from.UID, x.group(from.GID), from.GIDs...)
}

// group keeps a user from claiming the superuser's group, and what is no group.
func (x *export) group(gid uint32) uint32 {
	if gid == vfs.NoID || x.Squash == SquashRoot && gid == 0 {
		return x.anonGID
	}
	return gid
}

// exportRoot is the directory of an export's path. It is immutable.
type exportRoot struct {
	ino   vfs.Ino
	since vfs.MoveStamp
}

func (x *export) whole() bool { return x.Path == "/" }
