package vfs

import (
	"bytes"
	"context"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/secrets"
)

// maxSettingNameBytes bounds the name of a setting; doors use short words.
const maxSettingNameBytes = 255

// Setting returns a small value kept in the store for a door (exports …), nil
// if it is unset.
func (fs *FS) Setting(ctx context.Context, name string) ([]byte, error) {
	var value []byte
	err := fs.view(ctx, func(r cluster.Reader) (err error) {
		value, err = r.Get(record.SettingKey(name))
		return err
	})
	return bytes.Clone(value), err // others may hold what the store returned
}

// Settings returns all settings whose names begin with prefix. Doors keep few
// of them: they are read at once.
func (fs *FS) Settings(ctx context.Context, prefix string) (map[string][]byte, error) {
	start := record.SettingKey(prefix)
	end := append(record.SettingKey(prefix), bytes.Repeat([]byte{0xff}, maxSettingNameBytes)...)
	var found map[string][]byte
	err := fs.view(ctx, func(r cluster.Reader) error {
		found = make(map[string][]byte)
		return r.Scan(start, end, cluster.ScanOptions{}, func(key, value []byte) error {
			found[string(key[1:])] = bytes.Clone(value)
			return nil
		})
	})
	return found, err
}

// UpdateSetting changes a setting in one transaction; nil removes it. change
// may be called several times, and its error is returned.
func (fs *FS) UpdateSetting(ctx context.Context, name string, change func(old []byte) ([]byte, error)) error {
	if name == "" || len(name) > maxSettingNameBytes {
		return fmt.Errorf("setting name of %d bytes: %w", len(name), ErrInvalid)
	}
	return fs.update(ctx, func(t cluster.Txn, _ *op) error {
		key := record.SettingKey(name)
		old, err := t.Get(key)
		if err != nil {
			return err
		}
		value, err := change(bytes.Clone(old))
		if err != nil {
			return err
		}
		if value == nil {
			return t.Delete(key)
		}
		return t.Set(key, value)
	})
}

// StoreSecretBytes is the length of a secret of the store.
const StoreSecretBytes = record.StoreSecretBytes

// StoreSecret returns a secret of the store's own, which is made when it is
// asked for first and stays the same from then on, for every process. Doors
// derive keys from it for what clients hand back and must not make up (NFS
// file handles). Nothing shows it: whoever knows it can forge all of that.
func (fs *FS) StoreSecret(ctx context.Context, name string) (secret []byte, err error) {
	if name == "" || len(name) > maxSettingNameBytes {
		return nil, fmt.Errorf("name of a store's secret of %d bytes: %w", len(name), ErrInvalid)
	}
	err = fs.view(ctx, func(r cluster.Reader) (err error) {
		_, secret, err = secrets.Find(r, fs.cfg.Keys, name)
		return err
	})
	if err != nil || secret != nil {
		return secret, err
	}
	// Durable before anybody is given what it makes good, whatever durability
	// the store has.
	err = fs.update(cluster.Strict(ctx), func(t cluster.Txn, _ *op) (err error) {
		secret, err = secrets.FindOrMake(t, fs.cfg.Keys, name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return secret, nil
}
