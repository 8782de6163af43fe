package secrets

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
	"ogw/vfs/seal"
)

// State is what Seal found about the secrets of the store.
type State struct {
	// Keys are the IDs of the keys of this process, the first seals; nil: none.
	Keys []string
	// Missing are the IDs of keys that secrets are sealed with and this process
	// has not, and Locked the access keys that nobody can use because of that.
	Missing []string
	Locked  []LockedKey
	// Sealed counts the secrets that were sealed.
	Sealed int
	// Damaged counts the records that hold secrets and cannot be read: what they
	// hold stays as it is stored, maybe in clear. The log names them.
	Damaged int
}

// LockedKey is an access key whose secret cannot be opened.
type LockedKey struct{ User, Key string }

// erasedTables are those that hold secrets, and the one that did in format 1.
var erasedTables = []byte{record.TabUser, record.TabSecret, record.TabUserName}

// maxToldDamaged bounds the damaged records that one Seal names in the log.
const maxToldDamaged = 20

// Seal brings all secrets to the first key, if there is one, and takes note
// of those that cannot be opened:
//
//  1. Each record with a secret in clear, or sealed with another key than the
//     first, is written anew, in a transaction of its own; the first of them
//     sets the counter "erase".
//  2. The engine erases what these records, and those of format 1, were.
//  3. The counter goes.
//
// A process that dies leaves records of either form, which both open, and the
// counter, by which the next Seal with a key goes on.
func Seal(ctx context.Context, kv cluster.KV, keys *seal.Keyring, log *slog.Logger) (State, error) {
	ctx = cluster.Strict(ctx)
	s := sealer{kv: kv, keys: keys, log: log}
	old, err := s.find(ctx)
	if err != nil {
		return State{}, fserr.Map(err)
	}
	if keys == nil {
		return s.state, nil
	}
	for _, k := range old {
		if err := s.rewrite(ctx, k); err != nil {
			return State{}, fmt.Errorf("seal the secrets: %w", err)
		}
	}
	if err := s.erase(ctx); err != nil {
		return State{}, fmt.Errorf("erase the secrets that were in clear: %w", err)
	}
	return s.state, nil
}

// sealer is one run of Seal.
type sealer struct {
	kv    cluster.KV
	keys  *seal.Keyring
	log   *slog.Logger
	state State
}

// find returns the keys of the records that must be written anew.
func (s *sealer) find(ctx context.Context) (old [][]byte, err error) {
	err = s.kv.View(ctx, func(r cluster.Reader) error {
		old, s.state = nil, State{Keys: s.keys.IDs()}
		for _, table := range []byte{record.TabUser, record.TabSecret} {
			prefix := []byte{table}
			err := r.Scan(prefix, cluster.PrefixEnd(prefix), cluster.ScanOptions{}, func(k, v []byte) error {
				if s.look(k, v) {
					old = append(old, slices.Clone(k))
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return old, err
}

// look reports whether a record must be written anew. A damaged one is counted,
// and left to those who read it.
func (s *sealer) look(k, v []byte) bool {
	if k[0] == record.TabSecret {
		_, err := record.DecodeStoreSecret(s.keys, string(k[1:]), v)
		switch {
		case errors.Is(err, seal.ErrUnknownKey):
			s.missing(v[1:])
		case err != nil:
			s.damaged(k, err)
		}
		return err == nil && (v[0] == record.StoreSecretClear || !s.current(v[1:]))
	}
	u, err := record.DecodeUser(record.UserID(k[1:]), v, s.keys)
	if err != nil {
		s.damaged(k, err)
		return false
	}
	for _, id := range u.Locked() {
		s.missing([]byte(u.SealedSecret(id)))
		s.state.Locked = append(s.state.Locked, LockedKey{u.Name, id})
	}
	return slices.ContainsFunc(record.StoredSecrets(v), func(secret record.StoredSecret) bool {
		return u.SealedSecret(secret.Key) == "" && (!secret.Sealed || !s.current(secret.Bytes))
	})
}

func (s *sealer) damaged(k []byte, err error) {
	if s.state.Damaged++; s.state.Damaged <= maxToldDamaged {
		s.log.Warn("a record with secrets is damaged and was not sealed", "key", fmt.Sprintf("%q", k), "err", err)
	}
}

func (s *sealer) missing(sealed []byte) {
	if id := seal.KeyID(sealed); !slices.Contains(s.state.Missing, id) {
		s.state.Missing = append(s.state.Missing, id)
	}
}

func (s *sealer) current(sealed []byte) bool { return s.keys != nil && s.keys.Current(sealed) }

// rewrite stores a record anew, which seals what is open.
func (s *sealer) rewrite(ctx context.Context, k []byte) error {
	err := s.kv.Update(ctx, func(t cluster.Txn) error {
		v, err := t.Get(k)
		if err != nil || v == nil {
			return err
		}
		if err := record.SetCounter(t, record.CounterErase, 1); err != nil {
			return err
		}
		v, _, err = Recode(k, v, s.keys, s.keys, true)
		if err != nil {
			return err
		}
		return t.Set(k, v)
	})
	if err == nil {
		s.state.Sealed++
	}
	return fserr.Map(err)
}

// erase makes the engine forget what was replaced, by this process or by one
// that did not come to it.
func (s *sealer) erase(ctx context.Context) error {
	due := uint64(0)
	err := s.kv.View(ctx, func(r cluster.Reader) (err error) {
		due, err = record.Counter(r, record.CounterErase)
		return err
	})
	if err != nil || due == 0 {
		return fserr.Map(err)
	}
	var ranges []cluster.KeyRange
	for _, table := range erasedTables {
		ranges = append(ranges, cluster.KeyRange{Start: []byte{table}, End: cluster.PrefixEnd([]byte{table})})
	}
	if err := s.kv.Erase(ctx, ranges...); err != nil {
		return fserr.Map(err)
	}
	return fserr.Map(s.kv.Update(ctx, func(t cluster.Txn) error { return t.Delete(record.CounterKey(record.CounterErase)) }))
}
