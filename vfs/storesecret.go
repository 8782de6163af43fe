package vfs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/record"
	"ogw/vfs/seal"
)

// StoreSecretBytes is the length of a secret of the store.
const StoreSecretBytes = record.StoreSecretBytes

// nextSlot names the secret that takes the place of one which is sealed with a
// key that is lost: what the old one made good is void, and if the key comes
// back, so does the old secret.
const nextSlot = "~"

// StoreSecret returns a secret of the store's own, which is made when it is
// asked for first and stays the same from then on, for every process. Doors
// derive keys from it for what clients hand back and must not make up (NFS
// file handles). Nothing shows it: whoever knows it can forge all of that.
func (fs *FS) StoreSecret(ctx context.Context, name string) (secret []byte, err error) {
	if name == "" || len(name) > maxSettingNameBytes {
		return nil, fmt.Errorf("name of a store's secret of %d bytes: %w", len(name), ErrInvalid)
	}
	err = fs.view(ctx, func(r cluster.Reader) (err error) {
		_, secret, err = fs.findStoreSecret(r, name)
		return err
	})
	if err != nil || secret != nil {
		return secret, err
	}
	// Durable before anybody is given what it makes good, whatever durability
	// the store has.
	err = fs.update(cluster.Strict(ctx), func(t cluster.Txn, _ *op) (err error) {
		var slot string
		if slot, secret, err = fs.findStoreSecret(t, name); err != nil || secret != nil {
			return err // another process was faster
		}
		secret = make([]byte, StoreSecretBytes)
		rand.Read(secret)
		return fs.putStoreSecret(t, slot, secret)
	})
	if err != nil {
		return nil, err
	}
	return secret, nil
}

// findStoreSecret returns the first secret of that name which can be opened,
// and nil with the slot for a new one if there is none.
func (fs *FS) findStoreSecret(r cluster.Reader, name string) (slot string, secret []byte, err error) {
	for slot = name; ; slot += nextSlot {
		b, err := r.Get(record.StoreSecretKey(slot))
		if err != nil || b == nil {
			return slot, nil, err
		}
		secret, err := fs.openStoreSecret(slot, b)
		if !errors.Is(err, seal.ErrUnknownKey) {
			return slot, secret, err
		}
	}
}

// openStoreSecret reads the value of key 'K'. With record.EncodeStoreSecret it is all
// that knows how a secret is stored.
func (fs *FS) openStoreSecret(slot string, b []byte) ([]byte, error) {
	return record.DecodeStoreSecret(fs.cfg.Keys, slot, b)
}

func (fs *FS) putStoreSecret(t cluster.Txn, slot string, secret []byte) error {
	if err := fs.noteClear(t, 1); err != nil {
		return err
	}
	return t.Set(record.StoreSecretKey(slot), record.EncodeStoreSecret(fs.cfg.Keys, slot, secret))
}
