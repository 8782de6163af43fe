package model

import (
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"ogw/integration/doors"
)

const (
	// maxUploads is how many uploads a worker has open: what they copied from
	// is overwritten, renamed and removed meanwhile.
	maxUploads = 3
	// minPart is the least size of a part that is not the last.
	minPart = 5 << 20
	// largeUploads: one upload of so many has a part of minPart.
	largeUploads = 8
)

// upload is an open multipart upload and what its parts hold.
type upload struct {
	doors.Upload
	door  doors.Store
	path  string
	large bool // the first part has minPart, and a second one follows
	parts []file
}

func (w *Worker) beginUpload() bool {
	if len(w.uploads) >= maxUploads {
		return w.goOnWithUpload()
	}
	p, d := w.path(), pick(w, w.d.Stores)
	w.note("%s begin upload of %s", d.Name(), p)
	u, err := d.Upload(w.full(p))
	if err != nil {
		return w.failf("begin upload of %s through %s: %v", p, d.Name(), err)
	}
	w.uploads = append(w.uploads, &upload{Upload: u, door: d, path: p, large: w.rnd.IntN(largeUploads) == 0})
	return true
}

// goOnWithUpload adds or replaces a part, completes or aborts.
func (w *Worker) goOnWithUpload() bool {
	if len(w.uploads) == 0 {
		return w.beginUpload()
	}
	u := pick(w, w.uploads)
	whole := len(u.parts) == 2 || len(u.parts) == 1 && !u.large
	switch {
	case w.rnd.IntN(10) == 0:
		w.note("abort upload of %s", u.path)
		if err := u.Abort(); err != nil {
			return w.failf("abort upload of %s: %v", u.path, err)
		}
		w.forget(u)
		return true
	case whole && w.rnd.IntN(3) > 0:
		return w.complete(u)
	case u.large && len(u.parts) == 0:
		return w.addPart(u, 1, w.body()+strings.Repeat("L", minPart))
	case u.large:
		return w.addSmall(u, 2)
	default:
		return w.addSmall(u, 1)
	}
}

func (w *Worker) forget(u *upload) {
	for i := range w.uploads {
		if w.uploads[i] == u {
			w.uploads = append(w.uploads[:i], w.uploads[i+1:]...)
			return
		}
	}
}

// addSmall uploads a last part: bytes, or a range of another object.
func (w *Worker) addSmall(u *upload, number int) bool {
	files := w.m.sortedFiles()
	if len(files) == 0 || w.rnd.IntN(2) == 0 {
		return w.addPart(u, number, w.body())
	}
	p := pick(w, files)
	from := w.m.files[p]
	off := w.rnd.IntN(len(from.body)) // no body is empty
	length := 1 + w.rnd.IntN(len(from.body)-off)
	if w.rnd.IntN(2) == 0 {
		off, length = 0, len(from.body)
	}
	w.note("part %d of %s is %d bytes at %d of %s", number, u.path, length, off, p)
	etag, err := u.CopyPart(number, w.full(p), int64(off), int64(length))
	if err != nil {
		return w.failf("copy %s to part %d of %s through %s: %v", p, number, u.path, u.door.Name(), err)
	}
	u.set(number, file{from.body[off : off+length], etag})
	return true
}

func (w *Worker) addPart(u *upload, number int, body string) bool {
	w.note("part %d of %s is %d bytes", number, u.path, len(body))
	etag, err := u.Part(number, body)
	if want := written(body); err != nil || etag != want.etag {
		return w.failf("part %d of %s through %s: ETag %q, want %q, error %v", number, u.path, u.door.Name(), etag, want.etag, err)
	}
	u.set(number, file{body, etag})
	return true
}

func (u *upload) set(number int, part file) { u.parts = append(u.parts[:number-1], part) }

// whole is the object that the parts make.
func (u *upload) whole() (f file, etags []string) {
	var sums []byte
	for _, p := range u.parts {
		f.body += p.body
		sum, _ := hex.DecodeString(p.etag) // else the comparison fails
		sums = append(sums, sum...)
		etags = append(etags, p.etag)
	}
	all := md5.Sum(sums)
	f.etag = fmt.Sprintf("%x-%d", all, len(u.parts))
	return f, etags
}

// complete publishes, sometimes under a precondition; a refused one leaves
// the upload as it is.
func (w *Worker) complete(u *upload) bool {
	var c doors.Cond
	var want error
	if w.rnd.IntN(3) == 0 {
		var ok bool
		if c, want, ok = w.cond(u.door, u.path); !ok {
			return false
		}
	}
	f, etags := u.whole()
	w.note("complete %s if %+v (%d parts, %d bytes)", u.path, c, len(etags), len(f.body))
	etag, err := u.Complete(etags, c)
	if !errors.Is(err, want) || err == nil && etag != f.etag {
		return w.failf("complete %s if %+v through %s: ETag %q, error %v; want %q, %v", u.path, c, u.door.Name(), etag, err, f.etag, want)
	}
	if want == nil {
		w.m.files[u.path] = f
		w.forget(u)
	}
	return true
}
