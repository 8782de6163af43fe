package doors

import (
	"errors"
	"io/fs"
	"strings"
)

// Errors that mean the same behind every door; others are the client's own.
var (
	// ErrAbsent: there is no such object, file or upload.
	ErrAbsent = fs.ErrNotExist
	// ErrRefused: a precondition does not hold.
	ErrRefused = errors.New("precondition failed")
)

// Door writes and reads whole files.
type Door interface {
	Name() string
	Write(path, body string) error
	Read(path string) (string, error)
}

// Posix is a door that knows directories. Remove is unlink, Rmdir never
// removes a file.
type Posix interface {
	Door
	Mkdir(path string) error
	Remove(path string) error
	Rmdir(path string) error
	Rename(from, to string) error
	List(dir string) (names []string, err error)
}

// Object is a door that knows keys.
type Object interface {
	Door
	// Delete may succeed when there is nothing.
	Delete(path string) error
}

// Cond is the precondition of a write: ErrRefused if it does not hold.
type Cond struct {
	IfMatch string // ETag without quotes; ErrAbsent if there is no object
	IfNone  bool   // If-None-Match: *
}

// Store is a door with all of S3's ways to make and remove objects.
type Store interface {
	Object
	WriteIf(path, body string, c Cond) error
	DeleteMany(bucket string, keys []string) error
	// Copy copies on the server; ErrAbsent without a source. Onto itself it
	// replaces the metadata.
	Copy(from, to string) error
	// Head returns size and ETag (without quotes); ErrAbsent.
	Head(path string) (size int64, etag string, err error)
	// Keys lists keys and common prefixes in the order that the door has
	// them, page by page.
	Keys(bucket, prefix, delimiter string, page int32) ([]string, error)
	Upload(path string) (Upload, error)
}

// Upload is a multipart upload. Parts are numbered from 1; ETags are without
// quotes.
type Upload interface {
	Part(number int, body string) (etag string, err error)
	// CopyPart takes a range of an object; ErrAbsent without it.
	CopyPart(number int, from string, off, length int64) (etag string, err error)
	// Complete publishes the parts 1 to len(etags).
	Complete(etags []string, c Cond) (etag string, err error)
	Abort() error
}

// split cuts a path into bucket and key.
func split(path string) (bucket, key string) {
	bucket, key, _ = strings.Cut(path, "/")
	return bucket, key
}

func unquote(etag *string) string {
	if etag == nil {
		return ""
	}
	return strings.Trim(*etag, `"`)
}
