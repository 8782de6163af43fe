package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ogw/httpapi/admin"
	"ogw/vfs"
)

const (
	// credentialsName is the file with the root user's key in the data
	// folder, in the form that AWS tools read (AWS_SHARED_CREDENTIALS_FILE).
	credentialsName = "credentials"
	// rootUser is made at the first start and may do everything.
	rootUser = "root"
)

// ensureRoot makes the root user if the store has no users yet. made tells
// so. The file is written first: if the process dies between, the next start
// takes the key from it.
func ensureRoot(ctx context.Context, store *vfs.FS, dir string) (key vfs.AccessKey, made bool, err error) {
	users, err := store.ListUsers(ctx)
	if err != nil || len(users) > 0 {
		return vfs.AccessKey{}, false, err
	}
	path := filepath.Join(dir, credentialsName)
	key, err = readCredentials(path)
	if errors.Is(err, fs.ErrNotExist) {
		key = admin.NewKey(time.Now())
		err = writeCredentials(path, key)
	}
	if err != nil {
		return key, false, err
	}
	// What root writes belongs to who runs the process, so that a mount by
	// the same person can change it. A store whose users are all removed gets
	// its first one anew.
	_, err = store.MakeUser(ctx, vfs.User{
		Name: rootUser, UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), Admin: true, Founder: true, Keys: []vfs.AccessKey{key},
	}, vfs.UserOptions{Inherit: true})
	return key, err == nil, err
}

// keysChanged keeps the file in step with the root user, whatever the name of
// now.
func keysChanged(dir string) func(vfs.User) error {
	return func(u vfs.User) error {
		path := filepath.Join(dir, credentialsName)
		switch {
		case !u.Founder:
			return nil
		case len(u.Keys) == 0:
			return removeCredentials(path)
		}
		return writeCredentials(path, u.Keys[0])
	}
}

func removeCredentials(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("credentials: %w", err)
	}
	return syncDir(filepath.Dir(path))
}

func readCredentials(path string) (vfs.AccessKey, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return vfs.AccessKey{}, err
	}
	key := vfs.AccessKey{Created: time.Now().UnixNano()}
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
func writeCredentials(path string, key vfs.AccessKey) error {
	text := fmt.Sprintf("# The root user of this ogw store. Keep it secret.\n[default]\n"+
		"aws_access_key_id = %s\naws_secret_access_key = %s\n", key.ID, key.Secret)
	if err := replacePrivate(path, []byte(text), true); err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
