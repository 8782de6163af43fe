package model

import (
	"crypto/md5"
	"encoding/hex"
	"errors"

	"ogw/integration/doors"
)

// written is a file with the ETag of a plain PUT.
func written(body string) file {
	sum := md5.Sum([]byte(body))
	return file{body, hex.EncodeToString(sum[:])}
}

// put writes through an object door: always possible, shadowing included.
func (w *Worker) put() bool {
	p, d, body := w.path(), pick(w, w.d.Objects), w.body()
	w.note("%s put %s (%d bytes)", d.Name(), p, len(body))
	if err := d.Write(w.full(p), body); err != nil {
		return w.failf("put %s through %s: %v", p, d.Name(), err)
	}
	w.m.files[p] = written(body)
	return true
}

// cond is a random precondition of a write to p, and the error it must give.
func (w *Worker) cond(d doors.Store, p string) (c doors.Cond, want error, ok bool) {
	f, exists := w.m.files[p]
	switch w.rnd.IntN(3) {
	case 0:
		c.IfNone = true
		if exists {
			want = doors.ErrRefused
		}
	case 1: // the ETag of nothing that is ever written here
		c.IfMatch = written("").etag
		want = doors.ErrRefused
	default:
		c.IfMatch = f.etag
		if exists && f.etag == "" {
			var err error
			if _, c.IfMatch, err = d.Head(w.full(p)); err != nil {
				return c, nil, w.failf("head %s through %s: %v", p, d.Name(), err)
			}
		}
		if !exists {
			c.IfMatch = written(w.root).etag
		}
	}
	if !exists && c.IfMatch != "" {
		want = doors.ErrAbsent
	}
	return c, want, true
}

// putIf writes under a precondition.
func (w *Worker) putIf() bool {
	p, d, body := w.path(), pick(w, w.d.Stores), w.body()
	c, want, ok := w.cond(d, p)
	if !ok {
		return false
	}
	w.note("%s put %s if %+v (%d bytes)", d.Name(), p, c, len(body))
	if err := d.WriteIf(w.full(p), body, c); !errors.Is(err, want) {
		return w.failf("put %s if %+v through %s: %v, want %v", p, c, d.Name(), err, want)
	}
	if want == nil {
		w.m.files[p] = written(body)
	}
	return true
}

// copy copies by reference; the ETag goes along if it is of the bytes.
func (w *Worker) copy() bool {
	p, q, d := w.path(), w.path(), pick(w, w.d.Stores)
	if files := w.m.sortedFiles(); len(files) > 0 && w.rnd.IntN(4) > 0 {
		p = pick(w, files)
	}
	f, exists := w.m.files[p]
	w.note("%s copy %s to %s", d.Name(), p, q)
	err := d.Copy(w.full(p), w.full(q))
	if exists && err != nil || !exists && !errors.Is(err, doors.ErrAbsent) {
		return w.failf("copy %s to %s through %s: %v, exists %v", p, q, d.Name(), err, exists)
	}
	if exists {
		w.m.files[q] = f
	}
	return true
}

// deleteKey deletes an object, which may not be there.
func (w *Worker) deleteKey() bool {
	p, d := w.path(), pick(w, w.d.Objects)
	w.note("%s delete %s", d.Name(), p)
	_, exists := w.m.files[p]
	if err := d.Delete(w.full(p)); err != nil && (exists || !errors.Is(err, doors.ErrAbsent)) {
		return w.failf("delete %s through %s: %v", p, d.Name(), err)
	}
	delete(w.m.files, p)
	return true
}

// maxDeletes is how many keys one request deletes.
const maxDeletes = 6

// deleteMany deletes objects and directories' own keys with one request.
func (w *Worker) deleteMany() bool {
	d := pick(w, w.d.Stores)
	bucket, above := w.place()
	var keys []string
	for range 1 + w.rnd.IntN(maxDeletes) {
		p := w.path()
		if w.rnd.IntN(3) == 0 {
			delete(w.m.made, p)
			p += "/"
		} else {
			delete(w.m.files, p)
		}
		keys = append(keys, above+p)
	}
	w.note("%s delete %q", d.Name(), keys)
	if err := d.DeleteMany(bucket, keys); err != nil {
		return w.failf("delete %q through %s: %v", keys, d.Name(), err)
	}
	return true
}

// putDir makes a directory explicit, as mkdir does, with its parents implied.
func (w *Worker) putDir() bool {
	p, d := w.path(), pick(w, w.d.Stores)
	w.note("%s put %s/", d.Name(), p)
	if err := d.Write(w.full(p)+"/", ""); err != nil {
		return w.failf("put %s/ through %s: %v", p, d.Name(), err)
	}
	w.m.made[p] = true
	return true
}

// deleteDir takes the mark back; the directory stays while something is in it.
func (w *Worker) deleteDir() bool {
	p, d := w.path(), pick(w, w.d.Stores)
	w.note("%s delete %s/", d.Name(), p)
	if err := d.Delete(w.full(p) + "/"); err != nil {
		return w.failf("delete %s/ through %s: %v", p, d.Name(), err)
	}
	delete(w.m.made, p)
	return true
}
