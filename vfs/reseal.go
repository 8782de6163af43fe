package vfs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
	"ogw/vfs/seal"
)

// SealState says what Open found about the secrets of the store.
type SealState struct {
	// Keys are the IDs of the keys of this process, the first seals; nil: none.
	Keys []string
	// Missing are the IDs of keys that secrets are sealed with and this process
	// has not, and Locked the access keys that nobody can use because of that.
	Missing []string
	Locked  []LockedKey
	// Sealed counts the secrets that were sealed by this Open.
	Sealed int
	// Damaged counts the records that hold secrets and cannot be read: what they
	// hold stays as it is stored, maybe in clear. The log names them.
	Damaged int
}

// LockedKey is an access key whose secret cannot be opened.
type LockedKey struct{ User, Key string }

// SealState returns what Open found.
func (fs *FS) SealState() SealState { return fs.sealing }

// Sealing the secrets of a store that got a key, or another one:
//
//  1. Each record with a secret in clear, or sealed with another key than the
//     first, is written anew, in a transaction of its own; the first of them
//     sets the counter "erase".
//  2. The engine erases what these records, and those of format 1, were.
//  3. The counter goes.
//
// A process that dies leaves records of either form, which both open, and the
// counter, by which the next Open with a key goes on.
const counterErase = "erase"

// erasedTables are those that hold secrets, and the one that did in format 1.
var erasedTables = []byte{record.TabUser, record.TabSecret, record.TabUserName}

// noteClear takes note that secrets are stored in clear, if they are: what
// replaces or removes them leaves them in the engine's files.
func (fs *FS) noteClear(t cluster.Txn, secrets int) error {
	if fs.cfg.Keys != nil || secrets == 0 {
		return nil
	}
	due, err := record.Counter(t, counterErase)
	if err != nil || due != 0 {
		return err
	}
	return record.SetCounter(t, counterErase, 1)
}

// reseal brings all secrets to the first key, if there is one, and takes note
// of those that cannot be opened.
func (fs *FS) reseal(ctx context.Context) error {
	ctx = cluster.Strict(ctx)
	s := sealer{fs: fs, state: SealState{Keys: fs.cfg.Keys.IDs()}}
	var old [][]byte
	err := fs.kv.View(ctx, func(r cluster.Reader) error {
		old, s.state = nil, SealState{Keys: s.state.Keys}
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
	if err != nil {
		return fserr.Map(err)
	}
	if fs.cfg.Keys != nil {
		for _, k := range old {
			if err := s.rewrite(ctx, k); err != nil {
				return fmt.Errorf("seal the secrets: %w", err)
			}
		}
		if err := s.erase(ctx); err != nil {
			return fmt.Errorf("erase the secrets that were in clear: %w", err)
		}
	}
	fs.sealing = s.state
	return nil
}

// sealer is one run of reseal.
type sealer struct {
	fs    *FS
	state SealState
}

// look reports whether a record must be written anew. A damaged one is counted,
// and left to those who read it.
func (s *sealer) look(k, v []byte) bool {
	if k[0] == record.TabSecret {
		_, err := s.fs.openStoreSecret(string(k[1:]), v)
		switch {
		case errors.Is(err, seal.ErrUnknownKey):
			s.missing(v[1:])
		case err != nil:
			s.damaged(k, err)
		}
		return err == nil && (v[0] == record.StoreSecretClear || !s.current(v[1:]))
	}
	u, err := decodeUser(UserID(k[1:]), slices.Clone(v), s.fs.cfg.Keys)
	if err != nil {
		s.damaged(k, err)
		return false
	}
	for id, sealed := range u.locked {
		s.missing([]byte(sealed))
		s.state.Locked = append(s.state.Locked, LockedKey{u.Name, id})
	}
	return slices.ContainsFunc(storedSecrets(v), func(secret storedSecret) bool {
		return u.locked[secret.key] == "" && (secret.form == secretClear || !s.current(secret.bytes))
	})
}

// maxToldDamaged bounds the damaged records that one Open names in the log.
const maxToldDamaged = 20

func (s *sealer) damaged(k []byte, err error) {
	if s.state.Damaged++; s.state.Damaged <= maxToldDamaged {
		s.fs.log.Warn("a record with secrets is damaged and was not sealed", "key", fmt.Sprintf("%q", k), "err", err)
	}
}

func (s *sealer) missing(sealed []byte) {
	if id := seal.KeyID(sealed); !slices.Contains(s.state.Missing, id) {
		s.state.Missing = append(s.state.Missing, id)
	}
}

func (s *sealer) current(sealed []byte) bool {
	return s.fs.cfg.Keys != nil && s.fs.cfg.Keys.Current(sealed)
}

// rewrite stores a record anew, which seals what is open.
func (s *sealer) rewrite(ctx context.Context, k []byte) error {
	err := s.fs.kv.Update(ctx, func(t cluster.Txn) error {
		v, err := t.Get(k)
		if err != nil || v == nil {
			return err
		}
		if err := record.SetCounter(t, counterErase, 1); err != nil {
			return err
		}
		if k[0] == record.TabSecret {
			secret, err := s.fs.openStoreSecret(string(k[1:]), v)
			if err != nil {
				return err
			}
			return s.fs.putStoreSecret(t, string(k[1:]), secret)
		}
		u, err := decodeUser(UserID(k[1:]), slices.Clone(v), s.fs.cfg.Keys)
		if err != nil {
			return err
		}
		return t.Set(k, u.encode(s.fs.cfg.Keys))
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
	err := s.fs.kv.View(ctx, func(r cluster.Reader) (err error) {
		due, err = record.Counter(r, counterErase)
		return err
	})
	if err != nil || due == 0 {
		return fserr.Map(err)
	}
	var ranges []cluster.KeyRange
	for _, table := range erasedTables {
		ranges = append(ranges, cluster.KeyRange{Start: []byte{table}, End: cluster.PrefixEnd([]byte{table})})
	}
	if err := s.fs.kv.Erase(ctx, ranges...); err != nil {
		return fserr.Map(err)
	}
	return fserr.Map(s.fs.kv.Update(ctx, func(t cluster.Txn) error { return t.Delete(record.CounterKey(counterErase)) }))
}
