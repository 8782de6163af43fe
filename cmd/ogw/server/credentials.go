package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"ogw/cmd/ogw/config"
	"ogw/cmd/ogw/privatefile"
	"ogw/vfs"
	"ogw/vfs/users"
)

const (
	// CredentialsName is the file with the root user's key in the data
	// folder, unless secrets are sealed, in the form that AWS tools read (AWS_SHARED_CREDENTIALS_FILE).
	CredentialsName = "credentials"
	// RootUser is made at the first start and may do everything.
	RootUser = "root"
)

// followWait bounds reading what a change has made of the store, for what follows it
// (the exports of NFS gateways, the file with root's key): who made the change waits
// for that, even when the client has gone.
const followWait = 30 * time.Second

// credentials is the file with root's key. Where secrets are sealed there is
// none: it would hold in clear what the store does not.
type credentials struct {
	path   string
	sealed bool
	// mu is held from reading the key to writing it, so that what was read last is
	// what the file has in the end. No transaction takes it.
	mu sync.Mutex
}

// openCredentials returns the file, which follows what this process changes from then
// on. A change that is stored stands, and its secret is answered, if the file fails.
func openCredentials(c *config.Config, vc vfs.Config, store *vfs.FS, log *slog.Logger) *credentials {
	file := &credentials{path: filepath.Join(c.Cluster.Dir, CredentialsName), sealed: vc.Keys != nil}
	store.Users().OnFounderKeys(func() {
		ctx, cancel := context.WithTimeout(context.Background(), followWait)
		defer cancel()
		if err := file.follow(ctx, store); err != nil {
			log.Error("the file with root's key could not follow a change of it", "file", file.path, "error", err)
		}
	})
	return file
}

// ensureRoot makes the root user if the store has no users yet, and returns
// the key if so. The file is written first: if the process dies between, the
// next start takes the key from it.
func (c *credentials) ensureRoot(ctx context.Context, store *vfs.FS) (*users.AccessKey, error) {
	all, err := store.Users().List(ctx)
	if err != nil {
		return nil, err
	}
	if len(all) > 0 {
		return nil, c.resume(ctx, store)
	}
	key, err := readCredentials(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		key = users.NewKey(time.Now())
		err = c.write(key)
	}
	if err != nil {
		return nil, err
	}
	// What root writes belongs to who runs the process, so that a mount by
	// the same person can change it. A store whose users are all removed gets
	// its first one anew.
	_, err = store.Users().Make(ctx, users.User{
		Name: RootUser, UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), Admin: true, Founder: true, Keys: []users.AccessKey{key},
	}, users.Options{Inherit: true, FreeUID: os.Getuid() == vfs.NobodyUID})
	if errors.Is(err, vfs.ErrUserExists) { // a gateway that starts beside this one was faster
		if _, _, known := store.Users().ByKey(ctx, key.ID); known == nil {
			return nil, c.destroyIfSealed()
		}
		return nil, c.destroy()
	}
	if err != nil {
		return nil, err
	}
	return &key, c.destroyIfSealed()
}

// file returns the path, "" if there is none: of a root without keys, or that was made
// with the data folder of another gateway.
func (c *credentials) file() string {
	if _, err := os.Lstat(c.path); err != nil || c.sealed {
		return ""
	}
	return c.path
}

// follow has the file hold the key that root has now, whatever the name.
func (c *credentials) follow(ctx context.Context, store *vfs.FS) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	u, err := store.Users().Founder(ctx)
	switch {
	case errors.Is(err, vfs.ErrNoSuchUser):
		return c.destroy()
	case err != nil:
		return err
	case len(u.Keys) == 0 || u.Keys[0].Secret == "": // none, or one that cannot be opened
		return c.destroy()
	}
	if kept, err := readCredentials(c.path); err == nil && kept.ID == u.Keys[0].ID && kept.Secret == u.Keys[0].Secret && !c.sealed {
		return nil
	}
	return c.write(u.Keys[0])
}

// resume has the file, if there is one, follow what became of root while this process
// did not look: others changed it, or one died on the way.
func (c *credentials) resume(ctx context.Context, store *vfs.FS) error {
	if _, err := os.Lstat(c.path); errors.Is(err, fs.ErrNotExist) || c.sealed {
		return c.destroyIfSealed()
	}
	return c.follow(ctx, store)
}

func (c *credentials) write(key users.AccessKey) error {
	if c.sealed {
		return c.destroy()
	}
	return writeCredentials(c.path, key)
}

func (c *credentials) destroyIfSealed() error {
	if !c.sealed {
		return nil
	}
	return c.destroy()
}

// destroy overwrites and removes the file, and what a process left that died
// while it wrote it.
func (c *credentials) destroy() error {
	removed := false
	dir := filepath.Dir(c.path)
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("credentials: %w", err)
	}
	for _, e := range list {
		if !e.Type().IsRegular() || !isCredentials(e.Name()) {
			continue
		}
		switch err := destroyFile(filepath.Join(dir, e.Name())); {
		case err == nil:
			removed = true
		case !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("credentials: %w", err)
		}
	}
	if !removed {
		return nil
	}
	return privatefile.SyncDir(dir)
}

// isCredentials reports whether a file is ours: the one, what is to take its
// place, or such a file of older versions, which ends in a number.
func isCredentials(name string) bool {
	rest, ok := strings.CutPrefix(name, CredentialsName)
	if !ok || rest == "" || rest == privatefile.NewSuffix {
		return ok
	}
	number, ok := strings.CutPrefix(rest, ".")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

func destroyFile(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(wipe(f), f.Close()); err != nil {
		return err
	}
	return os.Remove(path)
}

// wipe overwrites a small file with zeros.
func wipe(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(make([]byte, info.Size()), 0); err != nil {
		return err
	}
	return f.Sync()
}

func readCredentials(path string) (users.AccessKey, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return users.AccessKey{}, err
	}
	key := users.AccessKey{Created: time.Now().UnixNano()}
	for line := range strings.SplitSeq(string(b), "\n") {
		name, value, _ := strings.Cut(line, "=")
		switch strings.TrimSpace(name) {
		case "aws_access_key_id":
			key.ID = strings.TrimSpace(value)
		case "aws_secret_access_key":
			key.Secret = strings.TrimSpace(value)
		}
	}
	if key.ID == "" || key.Secret == "" {
		return key, fmt.Errorf("%s holds no access key: remove it or mend it", path)
	}
	return key, nil
}

// writeCredentials replaces the file, durably; only its owner can read it.
func writeCredentials(path string, key users.AccessKey) error {
	text := fmt.Sprintf("# The root user of this ogw store. Keep it secret.\n[default]\n"+
		"aws_access_key_id = %s\naws_secret_access_key = %s\n", key.ID, key.Secret)
	if err := privatefile.Replace(path, []byte(text), true); err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	return nil
}
