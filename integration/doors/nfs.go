package doors

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/willscott/go-nfs-client/nfs"
	"github.com/willscott/go-nfs-client/nfs/rpc"
)

// NFS is an NFS client in Go, which can remove, as libnfs's command line
// tools cannot.
type NFS struct {
	*nfs.Target
	client *rpc.Client
}

var _ Posix = (*NFS)(nil)

// DialNFS mounts an export of the gateway at host:port.
func DialNFS(addr, export string) (*NFS, error) {
	client, err := DialRPC(addr)
	if err != nil {
		return nil, err
	}
	m := nfs.Mount{Client: client}
	target, err := m.Mount(export, rpc.NewAuthUnix("test", 0, 0).Auth())
	if err != nil {
		client.Close()
		return nil, fmt.Errorf("mount %s: %w", export, err)
	}
	return &NFS{target, client}, nil
}

// dialTries bounds how often the client looks for a port of its own: it takes
// one at random, which another program may have.
const dialTries = 20

// callTimeout is far above what any call takes. The library sends a call again after
// five seconds, and a reply that comes in the moment of its time-out leaves it reading
// no more: its calls then fail after hundred time-outs.
const callTimeout = 2 * time.Minute

func init() { rpc.DefaultReadTimeout = callTimeout }

// DialRPC connects to the NFS gateway at host:port, from a reserved port if
// the process may.
func DialRPC(addr string) (client *rpc.Client, err error) {
	for range dialTries {
		client, err = rpc.DialTCP("tcp", addr, os.Geteuid() == 0)
		if !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, syscall.EADDRNOTAVAIL) {
			break
		}
	}
	return client, err
}

// Close ends the connection.
func (d *NFS) Close() { d.client.Close() }

// Name implements Door.
func (d *NFS) Name() string { return "nfs" }

// Write implements Door.
func (d *NFS) Write(path, body string) error {
	f, err := d.OpenFile(path, 0o644)
	if err != nil {
		return err
	}
	if err := d.Setattr(path, TruncateTo(0)); err != nil {
		return err
	}
	if _, err := f.Write([]byte(body)); err != nil {
		return err
	}
	return f.Close()
}

// Read implements Door.
func (d *NFS) Read(path string) (string, error) {
	f, err := d.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	return string(b), err
}

// Mkdir implements Posix.
func (d *NFS) Mkdir(path string) error {
	_, err := d.Target.Mkdir(path, 0o755)
	return err
}

// Rmdir implements Posix.
func (d *NFS) Rmdir(path string) error { return d.RmDir(path) }

// List implements Posix.
func (d *NFS) List(dir string) ([]string, error) {
	entries, err := d.ReadDirPlus(dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// TruncateTo is a SETATTR that changes the size only.
func TruncateTo(size uint64) nfs.Sattr3 {
	return nfs.Sattr3{Size: nfs.SetSize{SetIt: true, Size: size}}
}
