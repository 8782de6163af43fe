package secrets

import (
	"crypto/rand"
	"errors"

	"ogw/cluster"
	"ogw/vfs/internal/record"
	"ogw/vfs/seal"
)

// nextSlot names the secret that takes the place of one which is sealed with a
// key that is lost: what the old one made good is void, and if the key comes
// back, so does the old secret.
const nextSlot = "~"

// Find returns the first secret of a name that can be opened, and nil with the
// slot for a new one if there is none.
func Find(r cluster.Reader, keys *seal.Keyring, name string) (slot string, secret []byte, err error) {
	for slot = name; ; slot += nextSlot {
		b, err := r.Get(record.StoreSecretKey(slot))
		if err != nil || b == nil {
			return slot, nil, err
		}
		secret, err := record.DecodeStoreSecret(keys, slot, b)
		if !errors.Is(err, seal.ErrUnknownKey) {
			return slot, secret, err
		}
	}
}

// FindOrMake is Find, and makes the secret if there is none.
func FindOrMake(t cluster.Txn, keys *seal.Keyring, name string) ([]byte, error) {
	slot, secret, err := Find(t, keys, name)
	if err != nil || secret != nil {
		return secret, err
	}
	secret = make([]byte, record.StoreSecretBytes)
	rand.Read(secret)
	return secret, put(t, keys, slot, secret)
}

func put(t cluster.Txn, keys *seal.Keyring, slot string, secret []byte) error {
	if err := NoteClear(t, keys, 1); err != nil {
		return err
	}
	return t.Set(record.StoreSecretKey(slot), record.EncodeStoreSecret(keys, slot, secret))
}
