package vfs

import (
	"bytes"
	"context"
	"strings"

	"ogw/cluster"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"
)

// UploadPage is one page of ListUploads.
type UploadPage struct {
	Uploads        []UploadInfo
	CommonPrefixes []string
	// Truncated tells that there may be more behind (NextKey, NextUpload); a page
	// can be short, or empty, all the same. Where it ended at an upload that the
	// caller is not shown, NextUpload is sealed, and NextKey the newest key that
	// was told, if any.
	Truncated  bool
	NextKey    string
	NextUpload string
}

// ListUploadsOptions of ListUploads.
type ListUploadsOptions struct {
	Prefix    string
	Delimiter string // any string
	// The page begins behind this upload of this key; with no upload, behind all of
	// the key. UploadPage has those that continue.
	AfterKey, AfterUpload string
	MaxUploads            int // 0 to MaxListKeys, common prefixes included
}

// ListUploads returns uploads in order of key, then of upload: all to the bucket's
// owner, to others those that they began (S3 ListMultipartUploads).
func (fs *FS) ListUploads(ctx context.Context, bucket string, o ListUploadsOptions) (UploadPage, error) {
	from := uploadPosition{key: o.AfterKey}
	if key, id, ok, err := fs.openMarker(ctx, bucket, o.AfterUpload); err != nil {
		return UploadPage{}, err
	} else if ok {
		from = uploadPosition{key, id}
	} else if id, _, ok := keypath.ParseUploadID(o.AfterUpload); ok {
		from.id = id
	}
	var l *uploadLister
	err := fs.view(ctx, func(r cluster.Reader) error {
		ino, err := keypath.UploadBucket(r, bucket)
		if err != nil {
			return err
		}
		j := fs.rights.On(ctx, r, ino)
		if err := j.Grants(ActListObjects, nil); err != nil {
			return err
		}
		l = &uploadLister{prefix: o.Prefix, delimiter: o.Delimiter, limit: min(o.MaxUploads, MaxListKeys)}
		if !j.Free() {
			if all, err := j.SeesUploads(); err != nil {
				return err
			} else if !all {
				l.only = j.Subject
			}
		}
		return l.run(r, ino, from)
	})
	if err != nil {
		return UploadPage{}, err
	}
	if at := l.passedAt; at != nil {
		if l.page.NextKey == "" {
			l.page.NextKey = o.AfterKey
		}
		if l.page.NextUpload, err = fs.sealMarker(ctx, bucket, at.key, at.id); err != nil {
			return UploadPage{}, err
		}
	}
	return l.page, nil
}

// uploadPosition is behind a key, or behind one of its uploads.
type uploadPosition struct {
	key string
	id  ContentID // 0: behind all of them
}

// uploadLister fills one page of uploads.
type uploadLister struct {
	prefix, delimiter string
	limit             int
	only              *Subject        // nil: everybody's
	bytes             int             // of the keys and common prefixes told
	passed            int             // uploads of others
	passedAt          *uploadPosition // where that ended the page; else nil
	page              UploadPage
}

const (
	// listUploadsChunk is how many uploads are read at once where those of others
	// are passed over.
	listUploadsChunk = 128
	// maxUploadsPassed bounds how many of them one page passes over; it then ends
	// early, behind the last of them.
	maxUploadsPassed = 10_000
)

func (l *uploadLister) run(r cluster.Reader, bucket Ino, after uploadPosition) error {
	base := record.UploadPrefix(bucket)
	start := record.AppendEscaped(base[:len(base):len(base)], l.prefix)
	end := cluster.PrefixEnd(start)
	if from := l.behind(bucket, after); bytes.Compare(from, start) > 0 {
		start = from
	}
	for l.limit > 0 && bytes.Compare(start, end) < 0 {
		var skip string // a common prefix to pass over
		n := 0
		o := cluster.ScanOptions{Limit: l.room() + 1}
		if l.only != nil {
			o.Limit = max(o.Limit, listUploadsChunk)
		}
		err := r.Scan(start, end, o, func(k, v []byte) error {
			n++
			u, err := record.DecodeUpload(k, v)
			if err != nil {
				return err
			}
			if l.only != nil && !rights.Began(l.only, u) {
				start = append(append(start[:0:0], k...), 0)
				return l.pass(u)
			}
			if l.room() == 0 || l.bytes >= maxListBytes {
				l.page.Truncated = true
				return cluster.ErrStop
			}
			if skip = l.commonPrefix(u.Key); skip != "" {
				l.page.CommonPrefixes = append(l.page.CommonPrefixes, skip)
				l.page.NextKey, l.page.NextUpload = skip, ""
				l.bytes += len(skip)
				return cluster.ErrStop
			}
			l.page.Uploads = append(l.page.Uploads, uploadInfo(u))
			l.page.NextKey, l.page.NextUpload = u.Key, keypath.UploadID(u)
			l.bytes += len(u.Key)
			start = append(append(start[:0:0], k...), 0)
			return nil
		})
		if err != nil {
			return err
		}
		if l.page.Truncated || skip == "" && n < o.Limit {
			break
		}
		if skip != "" {
			start = cluster.PrefixEnd(record.AppendEscaped(base[:len(base):len(base)], skip))
		}
	}
	if !l.page.Truncated {
		l.page.NextKey, l.page.NextUpload = "", ""
	}
	return nil
}

// pass counts an upload of somebody else's.
func (l *uploadLister) pass(u *record.Upload) error {
	if l.passed++; l.passed < maxUploadsPassed {
		return nil
	}
	l.page.Truncated = true
	l.passedAt = &uploadPosition{u.Key, u.ID}
	return cluster.ErrStop
}

func (l *uploadLister) room() int { return l.limit - len(l.page.Uploads) - len(l.page.CommonPrefixes) }

// behind returns the first stored key behind a position.
func (l *uploadLister) behind(bucket Ino, after uploadPosition) []byte {
	key := after.key
	if key == "" {
		return nil
	}
	if after.id != 0 {
		return append(record.UploadKey(bucket, key, after.id), 0)
	}
	k := record.AppendEscaped(record.UploadPrefix(bucket), key)
	if l.commonPrefix(key) == key {
		return cluster.PrefixEnd(k) // the page before ended with it
	}
	return append(k, 0, 2) // behind the end mark of the key, before any longer one
}

func (l *uploadLister) commonPrefix(key string) string {
	rest, ok := strings.CutPrefix(key, l.prefix)
	if l.delimiter == "" || !ok {
		return ""
	}
	i := strings.Index(rest, l.delimiter)
	if i < 0 {
		return ""
	}
	return key[:len(l.prefix)+i+len(l.delimiter)]
}
