package secrets

import (
	"errors"

	"ogw/cluster"
	"ogw/vfs/internal/record"
	"ogw/vfs/seal"
)

// Recode returns a pair of the tables that hold secrets as it is with
// these sealed anew with the keys to, in clear without any, if recode says so;
// what open cannot open stays as it is. n counts the secrets. An error means
// that the record cannot be understood.
func Recode(k, v []byte, open, to *seal.Keyring, recode bool) (value []byte, n int, err error) {
	if k[0] == record.TabSecret {
		secret, err := record.DecodeStoreSecret(open, string(k[1:]), v)
		switch {
		case errors.Is(err, seal.ErrUnknownKey):
			return v, 1, nil
		case err != nil:
			return nil, 0, err
		case recode:
			v = record.EncodeStoreSecret(to, string(k[1:]), secret)
		}
		return v, 1, nil
	}
	u, err := record.DecodeUser(record.UserID(k[1:]), v, open)
	if err != nil {
		return nil, 0, err
	}
	if recode {
		v = u.Encode(to)
	}
	return v, len(u.Keys), nil
}

// Locked returns the IDs of the keys that seal what keys cannot open of such a pair, one
// for each secret; all counts the secrets.
func Locked(k, v []byte, keys *seal.Keyring) (by []string, all int, err error) {
	if k[0] == record.TabSecret {
		_, err := record.DecodeStoreSecret(keys, string(k[1:]), v)
		if errors.Is(err, seal.ErrUnknownKey) {
			return []string{seal.KeyID(v[1:])}, 1, nil
		}
		return nil, 1, err
	}
	u, err := record.DecodeUser(record.UserID(k[1:]), v, keys)
	for _, key := range u.Locked() {
		by = append(by, seal.KeyID([]byte(u.SealedSecret(key))))
	}
	return by, len(u.Keys), err
}

// CountClear counts the secrets that are stored in clear. A damaged record counts
// for none: nobody carries it anywhere.
func CountClear(r cluster.Reader) (n int, err error) {
	for _, table := range []byte{record.TabUser, record.TabSecret} {
		err := r.Scan([]byte{table}, []byte{table + 1}, cluster.ScanOptions{}, func(k, v []byte) error {
			if table == record.TabSecret {
				if len(v) > 0 && v[0] == record.StoreSecretClear {
					n++
				}
				return nil
			}
			if _, err := record.DecodeUser(record.UserID(k[1:]), v, nil); err != nil {
				return nil //nolint:nilerr // see above
			}
			for _, s := range record.StoredSecrets(v) {
				if !s.Sealed {
					n++
				}
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return n, nil
}
