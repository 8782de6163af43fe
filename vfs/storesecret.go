package vfs

import (
	"context"
	"crypto/rand"
	"fmt"

	"ogw/cluster"
)

// StoreSecretBytes is the length of a secret of the store: as many random
// bits as any key that is derived from it.
const StoreSecretBytes = 32

// storeSecretVersion is the form of the value of key 'K': a version byte,
// then the secret.
const storeSecretVersion = 1

// StoreSecret returns a secret of the store's own, which is made when it is
// asked for first and stays the same from then on, for every process. Doors
// derive keys from it for what clients hand back and must not make up (NFS
// file handles). Nothing shows it: whoever knows it can forge all of that.
func (fs *FS) StoreSecret(ctx context.Context, name string) (secret []byte, err error) {
	if name == "" || len(name) > maxSettingNameBytes {
		return nil, fmt.Errorf("name of a store's secret of %d bytes: %w", len(name), ErrInvalid)
	}
	err = fs.view(ctx, func(r cluster.Reader) (err error) {
		secret, err = getStoreSecret(r, name)
		return err
	})
	if err != nil || secret != nil {
		return secret, err
	}
	// Durable before anybody is given what it makes good, whatever durability
	// the store has.
	err = fs.update(cluster.Strict(ctx), func(t cluster.Txn, _ *op) (err error) {
		if secret, err = getStoreSecret(t, name); err != nil || secret != nil {
			return err // another process was faster
		}
		secret = make([]byte, StoreSecretBytes)
		rand.Read(secret)
		return putStoreSecret(t, name, secret)
	})
	if err != nil {
		return nil, err
	}
	return secret, nil
}

// getStoreSecret reads a secret, nil if there is none. With putStoreSecret it
// is all that knows how one is stored.
func getStoreSecret(r cluster.Reader, name string) ([]byte, error) {
	b, err := r.Get(storeSecretKey(name))
	if err != nil || b == nil {
		return nil, err
	}
	if len(b) != 1+StoreSecretBytes || b[0] != storeSecretVersion {
		return nil, fmt.Errorf("%w: the store's secret %q", ErrCorrupt, name)
	}
	return append([]byte(nil), b[1:]...), nil
}

func putStoreSecret(t cluster.Txn, name string, secret []byte) error {
	return t.Set(storeSecretKey(name), append([]byte{storeSecretVersion}, secret...))
}
