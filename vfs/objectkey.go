package vfs

import (
	"fmt"
	"strings"

	"ogw/cluster"
	"ogw/vfs/internal/record"
)

// objectKey is the name of an object, split into stored names.
type objectKey struct {
	ObjectName
	names []string // from the bucket down; one at the least
	dir   bool     // the key ends in "/": the last name is a directory's
}

// parseKey splits a key. ErrNoSuchBucket for a name that no bucket can have,
// ErrInvalid for the empty key, ErrKeyTooLong.
func parseKey(name ObjectName) (objectKey, error) {
	k := objectKey{ObjectName: name}
	rest := name.Key
	if name.Bucket == "" {
		rest = belowTop(name.Key)
	} else if !ValidBucketName(name.Bucket) {
		return k, fmt.Errorf("bucket %q: %w", name.Bucket, ErrNoSuchBucket)
	}
	if name.Key == "" {
		return k, fmt.Errorf("empty key: %w", ErrInvalid)
	}
	if len(rest) > MaxKeyBytes {
		return k, fmt.Errorf("key of %d bytes, at most %d are allowed: %w", len(rest), MaxKeyBytes, ErrKeyTooLong)
	}
	path, dir := strings.CutSuffix(name.Key, "/")
	k.dir = dir
	k.names = strings.Split(path, "/")
	return k, nil
}

// belowTop returns what counts of a key that begins with the name of a
// top-level directory: not that name.
func belowTop(key string) string {
	if i := strings.IndexByte(key, '/'); i >= 0 && i <= MaxNameBytes {
		return key[i+1:]
	}
	return key
}

// below is the key within its bucket.
func (k *objectKey) below() string {
	if k.Bucket != "" {
		return k.Key
	}
	_, key, _ := strings.Cut(k.Key, "/")
	return key
}

// bucketName is the name of the bucket that the key leads into.
func (k *objectKey) bucketName() string {
	if k.Bucket != "" {
		return k.Bucket
	}
	return k.names[0]
}

func (k *objectKey) last() string { return k.names[len(k.names)-1] }

// keyPlace is where a key leads in one snapshot.
type keyPlace struct {
	// trail are the directories on the way, from the bucket's (with bucket
	// "": the root) to the deepest that exists.
	trail []step
	// missing are the names of the directories on the way that do not exist;
	// entry is nil then.
	missing []string
	entry   *record.Dentry // nil: no such entry
}

// step is one directory of a trail, with what its entry tells of its mode.
type step struct {
	ino Ino
	record.Tells
}

func stepTo(e *record.Dentry) step { return step{e.Ino, e.Tells} }

// rootStep is the root, which has no entry. Its mode does not count where
// grants do; its flags it is asked for.
var rootStep = step{RootIno, record.TellsOpen | record.TellsUnchosen | record.TellsFlags}

// deepest is the directory of the entry, or the deepest on the way to it.
func (p *keyPlace) deepest() step { return p.trail[len(p.trail)-1] }

func (p *keyPlace) dir() Ino { return p.deepest().ino }

// bucket is the directory of the bucket that k leads into; its inode is 0 if there is
// none yet.
func (p *keyPlace) bucket(k *objectKey) step {
	switch {
	case k.Bucket != "":
		return p.trail[0]
	case len(p.trail) > 1:
		return p.trail[1]
	case p.entry != nil && p.entry.Dir:
		return stepTo(p.entry)
	}
	return step{}
}

// locate walks to a key, one Get for each name. ErrNoSuchBucket.
func locate(r cluster.Reader, k *objectKey) (keyPlace, error) {
	p := keyPlace{trail: make([]step, 0, len(k.names))}
	if k.Bucket == "" {
		p.trail = append(p.trail, rootStep)
	} else {
		e, err := bucketEntry(r, k.Bucket)
		if err != nil {
			return p, err
		}
		p.trail = append(p.trail, stepTo(e))
	}
	for i, name := range k.names[:len(k.names)-1] {
		e, err := record.GetDentry(r, p.dir(), name, true)
		if err != nil {
			return p, err
		}
		if e == nil {
			p.missing = k.names[i : len(k.names)-1]
			return p, nil
		}
		p.trail = append(p.trail, stepTo(e))
	}
	var err error
	p.entry, err = record.GetDentry(r, p.dir(), k.last(), k.dir)
	return p, err
}

// bucketEntry reads the entry of a bucket; ErrNoSuchBucket.
func bucketEntry(r cluster.Reader, bucket string) (*record.Dentry, error) {
	e, err := record.GetDentry(r, RootIno, bucket, true)
	if err == nil && e == nil {
		err = fmt.Errorf("bucket %q: %w", bucket, ErrNoSuchBucket)
	}
	return e, err
}

// noSuchKey is the error of an object that does not exist.
func (k *objectKey) noSuchKey() error { return fmt.Errorf("key %q: %w", k.Key, ErrNoSuchKey) }
