package record

import (
	"bytes"
	"errors"
	"fmt"

	"ogw/vfs/internal/fserr"
	"ogw/vfs/seal"
)

// StoreSecretBytes is the length of a secret of the store: as many random
// bits as any key that is derived from it.
const StoreSecretBytes = 32

// The forms of the value of key 'K': a form byte, then the secret, as it is or
// sealed.
const (
	StoreSecretClear  = 1
	storeSecretSealed = 2
)

func storeSecretContext(slot string) string { return "store " + slot }

// DecodeStoreSecret returns the secret of a slot; seal.ErrUnknownKey if it is
// sealed with a key that is not among keys.
func DecodeStoreSecret(keys *seal.Keyring, slot string, b []byte) ([]byte, error) {
	secret := []byte(nil)
	if len(b) > 0 && b[0] == StoreSecretClear {
		secret = bytes.Clone(b[1:]) // others may hold what the store returned
	} else if len(b) > 0 && b[0] == storeSecretSealed {
		var err error
		if secret, err = keys.Open(b[1:], storeSecretContext(slot)); errors.Is(err, seal.ErrUnknownKey) {
			return nil, err
		}
	}
	if len(secret) != StoreSecretBytes {
		return nil, fmt.Errorf("%w: the store's secret %q", fserr.ErrCorrupt, slot)
	}
	return secret, nil
}

func EncodeStoreSecret(keys *seal.Keyring, slot string, secret []byte) []byte {
	if keys == nil {
		return append([]byte{StoreSecretClear}, secret...)
	}
	return append([]byte{storeSecretSealed}, keys.Seal(secret, storeSecretContext(slot))...)
}
