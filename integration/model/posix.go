package model

import "strings"

// write makes or replaces a file through a POSIX door.
func (w *Worker) write() bool {
	p, d, body := w.path(), pick(w, w.d.Posix), w.body()
	w.note("%s write %s (%d bytes)", d.Name(), p, len(body))
	err := d.Write(w.full(p), body)
	if ok := w.m.canHold(p); ok != (err == nil) {
		return w.failf("write %s through %s: %v, want success %v", p, d.Name(), err, ok)
	}
	if err == nil {
		w.m.files[p] = file{body: body}
	}
	return true
}

// remove unlinks a file.
func (w *Worker) remove() bool {
	p, d := w.path(), pick(w, w.d.Posix)
	_, isFile := w.m.files[p]
	name := p
	if isFile {
		name = w.m.shown(p)
	}
	w.note("%s remove %s", d.Name(), name)
	if err := d.Remove(w.full(name)); isFile != (err == nil) {
		return w.failf("remove %s through %s: %v, exists %v", name, d.Name(), err, isFile)
	}
	if isFile {
		delete(w.m.files, p)
		w.m.keep(parent(p))
	}
	return true
}

func (w *Worker) mkdir() bool {
	p, d := w.path(), pick(w, w.d.Posix)
	_, isFile := w.m.files[p]
	ok := !isFile && w.m.canHold(p)
	w.note("%s mkdir %s", d.Name(), p)
	if err := d.Mkdir(w.full(p)); ok != (err == nil) {
		return w.failf("mkdir %s through %s: %v, want success %v", p, d.Name(), err, ok)
	}
	if ok {
		w.m.made[p] = true
	}
	return true
}

func (w *Worker) rmdir() bool {
	p, d := w.path(), pick(w, w.d.Posix)
	ok := w.m.isDir(p) && w.m.empty(p)
	w.note("%s rmdir %s", d.Name(), p)
	if err := d.Rmdir(w.full(p)); ok != (err == nil) {
		return w.failf("rmdir %s through %s: %v, want success %v", p, d.Name(), err, ok)
	}
	if ok {
		delete(w.m.made, p)
		w.m.keep(parent(p))
	}
	return true
}

// rename moves what POSIX shows under a name: the directory if there is one.
func (w *Worker) rename() bool {
	p, q, d := w.path(), w.path(), pick(w, w.d.Posix)
	_, isFile := w.m.files[p]
	_, qFile := w.m.files[q]
	dir, qDir := w.m.isDir(p), w.m.isDir(q)
	var ok bool
	switch {
	case !dir && !isFile, !w.m.isDir(parent(q)):
		ok = false
	case p == q:
		ok = true
	case dir:
		ok = !strings.HasPrefix(q, p+"/") && (!qDir && !qFile || qDir && w.m.empty(q))
	default:
		ok = !qDir
	}
	w.note("%s rename %s %s", d.Name(), p, q)
	if err := d.Rename(w.full(p), w.full(q)); ok != (err == nil) {
		return w.failf("rename %s to %s through %s: %v, want success %v", p, q, d.Name(), err, ok)
	}
	if !ok || p == q {
		return true
	}
	if dir {
		delete(w.m.made, q) // the source's mark counts
		w.m.move(p, q)
	} else {
		w.m.files[q] = w.m.files[p]
		delete(w.m.files, p)
	}
	w.m.keep(parent(p))
	return true
}
