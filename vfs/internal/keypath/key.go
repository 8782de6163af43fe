package keypath

import (
	"fmt"
	"strings"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/naming"
	"ogw/vfs/internal/record"
)

const (
	// MaxKeyBytes bounds an object key, S3's limit.
	MaxKeyBytes = 1024
	// MaxNameBytes bounds one stored component: a key may be one component.
	MaxNameBytes = MaxKeyBytes
)

// Key is the name of an object, split into stored names.
type Key struct {
	Bucket, Key string
	Names       []string // from the bucket down; one at the least
	Dir         bool     // the key ends in "/": the last name is a directory's
}

// Parse splits a key. ErrNoSuchBucket for a name that no bucket can have,
// ErrInvalid for the empty key, ErrKeyTooLong.
func Parse(bucket, key string) (Key, error) {
	k := Key{Bucket: bucket, Key: key}
	rest := key
	if bucket == "" {
		rest = BelowTop(key)
	} else if !naming.ValidBucket(bucket) {
		return k, fmt.Errorf("bucket %q: %w", bucket, fserr.ErrNoSuchBucket)
	}
	if key == "" {
		return k, fmt.Errorf("empty key: %w", fserr.ErrInvalid)
	}
	if len(rest) > MaxKeyBytes {
		return k, fmt.Errorf("key of %d bytes, at most %d are allowed: %w", len(rest), MaxKeyBytes, fserr.ErrKeyTooLong)
	}
	path, dir := strings.CutSuffix(key, "/")
	k.Dir = dir
	k.Names = strings.Split(path, "/")
	return k, nil
}

// BelowTop returns what counts of a key that begins with the name of a
// top-level directory: not that name.
func BelowTop(key string) string {
	if i := strings.IndexByte(key, '/'); i >= 0 && i <= MaxNameBytes {
		return key[i+1:]
	}
	return key
}

// Below is the key within its bucket.
func (k *Key) Below() string {
	if k.Bucket != "" {
		return k.Key
	}
	_, key, _ := strings.Cut(k.Key, "/")
	return key
}

// BucketName is the name of the bucket that the key leads into.
func (k *Key) BucketName() string {
	if k.Bucket != "" {
		return k.Bucket
	}
	return k.Names[0]
}

func (k *Key) Last() string { return k.Names[len(k.Names)-1] }

// Place is where a key leads in one snapshot.
type Place struct {
	// trail are the directories on the way, from the bucket's (with bucket
	// "": the root) to the deepest that exists.
	Trail []Step
	// missing are the names of the directories on the way that do not exist;
	// entry is nil then.
	Missing []string
	Entry   *record.Dentry // nil: no such entry
}

// Step is one directory of a trail, with what its entry repeats of its mode.
type Step struct {
	Ino record.Ino
	record.DirBits
}

func StepTo(e *record.Dentry) Step { return Step{e.Ino, e.DirBits} }

// RootStep is the root, which has no entry. Its mode does not count where
// grants do; its flags it is asked for.
var RootStep = Step{record.RootIno, record.DirOpen | record.DirUnchosen | record.DirFlags}

// Deepest is the directory of the entry, or the deepest on the way to it.
func (p *Place) Deepest() Step { return p.Trail[len(p.Trail)-1] }

func (p *Place) Dir() record.Ino { return p.Deepest().Ino }

// Bucket is the directory of the bucket that k leads into; its inode is 0 if there is
// none yet.
func (p *Place) Bucket(k *Key) Step {
	switch {
	case k.Bucket != "":
		return p.Trail[0]
	case len(p.Trail) > 1:
		return p.Trail[1]
	case p.Entry != nil && p.Entry.Dir:
		return StepTo(p.Entry)
	}
	return Step{}
}

// Locate walks to a key, one Get for each name. ErrNoSuchBucket.
func Locate(r cluster.Reader, k *Key) (Place, error) { return locate(r, k, false) }

// LocateBoth is Locate for who may add an entry, and then reads the other one of that
// name, too. It reads both in one round trip, if the engine's reads cost one and it
// knows by itself what a transaction has read.
func LocateBoth(r cluster.Reader, k *Key) (Place, error) { return locate(r, k, true) }

func locate(r cluster.Reader, k *Key, both bool) (Place, error) {
	p := Place{Trail: make([]Step, 0, len(k.Names))}
	if k.Bucket == "" {
		p.Trail = append(p.Trail, RootStep)
	} else {
		e, err := BucketEntry(r, k.Bucket)
		if err != nil {
			return p, err
		}
		p.Trail = append(p.Trail, StepTo(e))
	}
	for i, name := range k.Names[:len(k.Names)-1] {
		e, err := record.GetDentry(r, p.Dir(), name, true)
		if err != nil {
			return p, err
		}
		if e == nil {
			p.Missing = k.Names[i : len(k.Names)-1]
			return p, nil
		}
		p.Trail = append(p.Trail, StepTo(e))
	}
	if both {
		if _, _, err := record.GetDentries(r, p.Dir(), k.Last()); err != nil {
			return p, err
		}
	}
	var err error
	p.Entry, err = record.GetDentry(r, p.Dir(), k.Last(), k.Dir)
	return p, err
}

// BucketEntry reads the entry of a bucket; ErrNoSuchBucket.
func BucketEntry(r cluster.Reader, bucket string) (*record.Dentry, error) {
	e, err := record.GetDentry(r, record.RootIno, bucket, true)
	if err == nil && e == nil {
		err = fmt.Errorf("bucket %q: %w", bucket, fserr.ErrNoSuchBucket)
	}
	return e, err
}

// NoSuchKey is the error of an object that does not exist.
func (k *Key) NoSuchKey() error { return fmt.Errorf("key %q: %w", k.Key, fserr.ErrNoSuchKey) }

// LookupShown reads the entry that the POSIX doors show as name; nil if there
// is none.
func LookupShown(r cluster.Reader, dir record.Ino, name string) (*record.Dentry, error) {
	p, err := naming.ParsePosix(name)
	if err != nil {
		return nil, nil //nolint:nilerr // no entry can have that name
	}
	if p.Hash != nil {
		v, err := r.Get(record.LongNameKey(dir, p.Hash))
		if err != nil || v == nil {
			return nil, err
		}
		stored, isDir := strings.CutSuffix(string(v), "/")
		return record.GetDentry(r, dir, stored, isDir)
	}
	if p.File {
		return record.GetDentry(r, dir, p.Stored, false)
	}
	d, f, err := record.GetDentries(r, dir, p.Stored)
	if d == nil {
		d = f
	}
	return d, err
}
