package listing

import (
	"bytes"
	"strings"

	"ogw/cluster"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"
)

// UploadPage is one page of uploads, in order of key, then of upload.
type UploadPage struct {
	Uploads             []*record.Upload
	CommonPrefixes      []string
	Truncated           bool
	NextKey, NextUpload string    // what continues
	PassedAt            *Position // where an upload of others ended the page; else nil
}

// UploadOptions of a page of uploads.
type UploadOptions struct {
	Prefix, Delimiter string
	After             Position
	Max               int
}

// Uploads returns a page of the uploads of a bucket: all to whom j lets see them, to
// others those that they began.
func Uploads(j *rights.Judge, bucket record.Ino, o UploadOptions) (*UploadPage, error) {
	if err := j.Grants(rights.ActListObjects, nil); err != nil {
		return nil, err
	}
	l := &uploadLister{prefix: o.Prefix, delimiter: o.Delimiter, limit: min(o.Max, MaxKeys)}
	if !j.Free() {
		all, err := j.SeesUploads()
		if err != nil {
			return nil, err
		}
		if !all {
			l.only = j.Subject
		}
	}
	return &l.page, l.run(j.R, bucket, o.After)
}

// Position is behind a key, or behind one of its uploads.
type Position struct {
	Key string
	ID  record.ContentID // 0: behind all of them
}

// uploadLister fills one page of uploads.
type uploadLister struct {
	prefix, delimiter string
	limit             int
	only              *rights.Subject // nil: everybody's
	bytes             int             // of the keys and common prefixes returned
	passed            int             // uploads of others
	page              UploadPage
}

const (
	// listUploadsChunk is how many uploads are read at once where those of others
	// are passed over.
	listUploadsChunk = 128
	// MaxUploadsPassed bounds how many of them one page passes over; it then ends
	// early, behind the last of them.
	MaxUploadsPassed = 10_000
)

func (l *uploadLister) run(r cluster.Reader, bucket record.Ino, after Position) error {
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
			if l.room() == 0 || l.bytes >= MaxBytes {
				l.page.Truncated = true
				return cluster.ErrStop
			}
			if skip = l.commonPrefix(u.Key); skip != "" {
				l.page.CommonPrefixes = append(l.page.CommonPrefixes, skip)
				l.page.NextKey, l.page.NextUpload = skip, ""
				l.bytes += len(skip)
				return cluster.ErrStop
			}
			l.page.Uploads = append(l.page.Uploads, u)
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
	if l.passed++; l.passed < MaxUploadsPassed {
		return nil
	}
	l.page.Truncated = true
	l.page.PassedAt = &Position{u.Key, u.ID}
	return cluster.ErrStop
}

func (l *uploadLister) room() int { return l.limit - len(l.page.Uploads) - len(l.page.CommonPrefixes) }

// behind returns the first stored key behind a position.
func (l *uploadLister) behind(bucket record.Ino, after Position) []byte {
	key := after.Key
	if key == "" {
		return nil
	}
	if after.ID != 0 {
		return append(record.UploadKey(bucket, key, after.ID), 0)
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
