package vfs

import (
	"fmt"
	"strings"
)

// modelSteps are the operations of the model test, each as often as it is
// here. Each changes the model and the store, and returns whether the store
// must succeed, and what it returned.
var modelSteps = []func(*modelRun) (what string, ok bool, err error){
	(*modelRun).mkdir, (*modelRun).create, (*modelRun).unlink, (*modelRun).rmdir,
	(*modelRun).rename, (*modelRun).rename, (*modelRun).link, (*modelRun).write, (*modelRun).truncate,
	(*modelRun).put, (*modelRun).putIf, (*modelRun).copy, (*modelRun).copy, (*modelRun).upload,
	(*modelRun).delete, (*modelRun).deleteMany,
}

func (m *modelRun) mkdir() (string, bool, error) {
	p, dir, name := m.place()
	ok := p.fits(true)
	if ok {
		p.set(&mnode{dir: true, explicit: true, kids: map[string]*mnode{}})
	}
	_, err := m.fs.Mkdir(bg, Root, dir, name, 0o755)
	return fmt.Sprintf("mkdir %d %s", dir, name), ok, err
}

func (m *modelRun) create() (string, bool, error) {
	p, dir, name := m.place()
	ok := p.fits(false)
	if ok {
		p.set(&mnode{links: 1})
	}
	_, _, _, err := m.fs.Create(bg, Root, dir, name, CreateOptions{Exclusive: true, NoOpen: true})
	return fmt.Sprintf("create %d %s", dir, name), ok, err
}

func (m *modelRun) unlink() (string, bool, error) {
	p, dir, name := m.place()
	n := p.entry()
	ok := n != nil && !n.dir
	if ok {
		n.links--
		p.d.take(p.stored, false)
	}
	return fmt.Sprintf("unlink %d %s", dir, name), ok, m.fs.Unlink(bg, Root, dir, name)
}

func (m *modelRun) rmdir() (string, bool, error) {
	p, dir, name := m.place()
	n := p.entry()
	ok := n != nil && n.dir && len(n.kids) == 0
	if ok {
		p.d.take(p.stored, true)
	}
	return fmt.Sprintf("rmdir %d %s", dir, name), ok, m.fs.Rmdir(bg, Root, dir, name)
}

func (m *modelRun) rename() (string, bool, error) {
	from, dir, name := m.place()
	to, dir2, name2 := m.place()
	flags := []RenameFlags{0, 0, RenameNoReplace, RenameExchange}[m.r.IntN(4)]
	ok := mrename(from, to, flags)
	err := m.fs.Rename(bg, Root, EntryName{dir, name}, EntryName{dir2, name2}, flags)
	return fmt.Sprintf("rename %d %s to %d %s (%d)", dir, name, dir2, name2, flags), ok, err
}

// aFile is a random place where there is a file.
func (m *modelRun) aFile() (*mnode, Ino) {
	const tries = 10
	for range tries {
		if p, dir, name := m.place(); p.entry() != nil && !p.entry().dir {
			return p.entry(), mustLookup(m.t, m.fs, dir, name).Ino
		}
	}
	return nil, 0
}

func (m *modelRun) link() (string, bool, error) {
	n, ino := m.aFile()
	if n == nil {
		return "nothing", true, nil
	}
	to, dir, name := m.place()
	ok := to.fits(false)
	if ok {
		n.links++
		to.set(n)
	}
	_, err := m.fs.Link(bg, Root, ino, dir, name)
	return fmt.Sprintf("link %d to %d %s", ino, dir, name), ok, err
}

// write changes a file in place, whatever else shares its content.
func (m *modelRun) write() (string, bool, error) {
	n, ino := m.aFile()
	if n == nil || m.unknown {
		return "nothing", true, nil
	}
	text, off := m.body(), m.r.IntN(len(n.body)+modelInline)
	n.body += strings.Repeat("\x00", max(0, off-len(n.body)))
	n.body = n.body[:off] + text + n.body[min(len(n.body), off+len(text)):]
	f, err := m.fs.Open(bg, Root, ino, OpenWrite)
	want(m.t, err, nil)
	_, err = f.WriteAt(bg, []byte(text), int64(off))
	want(m.t, err, nil)
	return fmt.Sprintf("write %d: %d bytes at %d", ino, len(text), off), true, f.Close(bg)
}

func (m *modelRun) truncate() (string, bool, error) {
	n, ino := m.aFile()
	if n == nil {
		return "nothing", true, nil
	}
	size := int64(m.r.IntN(len(n.body) + modelInline))
	n.body += strings.Repeat("\x00", max(0, int(size)-len(n.body)))
	n.body = n.body[:size]
	_, err := m.fs.SetAttr(bg, Root, ino, SetAttr{Size: &size})
	return fmt.Sprintf("truncate %d to %d", ino, size), true, err
}

func (m *modelRun) put() (string, bool, error) {
	comps, body := m.key(), m.body()
	mput(m.root, comps, body)
	_, err := m.fs.PutObject(bg, ObjectName{m.bucket, m.full(comps)}, strings.NewReader(body), PutOptions{Size: -1})
	return fmt.Sprintf("put %q", comps), true, err
}

// cond is a precondition for a write to a key, and whether it holds.
func (m *modelRun) cond(comps []string) (c Preconditions, ok bool) {
	exists := mfile(m.root, comps) != nil
	switch m.r.IntN(3) {
	case 0:
		return Preconditions{IfNoneMatch: []ETag{"*"}}, !exists
	case 1:
		return Preconditions{IfMatch: []ETag{"none"}}, false
	}
	if !exists {
		return Preconditions{IfMatch: []ETag{"*"}}, false
	}
	info, err := m.fs.HeadObject(bg, ObjectName{m.bucket, m.full(comps)}, GetOptions{})
	want(m.t, err, nil)
	return Preconditions{IfMatch: []ETag{info.ETag}}, true
}

func (m *modelRun) putIf() (string, bool, error) {
	comps, body := m.fileKey(), m.body()
	c, ok := m.cond(comps)
	if ok {
		mput(m.root, comps, body)
	}
	_, err := m.fs.PutObject(bg, ObjectName{m.bucket, m.full(comps)}, strings.NewReader(body), PutOptions{Size: -1, Cond: c})
	return fmt.Sprintf("put %q if %+v", comps, c), ok, err
}

func (m *modelRun) copy() (string, bool, error) {
	from, to := m.fileKey(), m.fileKey()
	source, target := mfile(m.root, from), mfile(m.root, to)
	ok := source != nil
	if ok && (target != source || m.full(from) != m.full(to)) {
		mput(m.root, to, source.body)
	}
	_, err := m.fs.CopyObject(bg, ObjectName{m.bucket, m.full(from)}, ObjectName{m.bucket, m.full(to)}, CopyOptions{})
	return fmt.Sprintf("copy %q to %q", from, to), ok, err
}

// upload publishes one part: bytes, or a range of another object.
func (m *modelRun) upload() (what string, ok bool, err error) {
	comps, body := m.fileKey(), m.body()
	var c Preconditions
	ok = true
	if m.r.IntN(3) == 0 {
		c, ok = m.cond(comps)
	}
	what = fmt.Sprintf("upload %q if %+v", comps, c)
	u, err := m.fs.CreateUpload(bg, ObjectName{m.bucket, m.full(comps)}, PutOptions{Size: -1}, "", false)
	if err != nil {
		return what, false, err
	}
	var part PartInfo
	from := m.fileKey()
	if n := mfile(m.root, from); n != nil && len(n.body) > 0 {
		off := m.r.IntN(len(n.body))
		body = n.body[off : off+1+m.r.IntN(len(n.body)-off)]
		what += fmt.Sprintf(" from %q at %d", from, off)
		part, err = m.fs.CopyPart(bg, ObjectName{m.bucket, m.full(comps)}.Upload(u.ID), 1, PartSource{ObjectName: ObjectName{m.bucket, m.full(from)}, Off: int64(off), Length: int64(len(body))})
	} else {
		part, err = m.fs.PutPart(bg, ObjectName{m.bucket, m.full(comps)}.Upload(u.ID), 1, strings.NewReader(body), PutOptions{Size: -1})
	}
	if err == nil {
		if ok {
			mput(m.root, comps, body)
		}
		_, err = m.fs.CompleteUpload(bg, ObjectName{m.bucket, m.full(comps)}.Upload(u.ID), CompleteOptions{Parts: []CompletePart{{Number: 1, ETag: part.ETag}}, Cond: c})
	}
	if err != nil && !m.unknown {
		want(m.t, m.fs.AbortUpload(bg, ObjectName{m.bucket, m.full(comps)}.Upload(u.ID)), nil)
	}
	return what, ok, err
}

func (m *modelRun) delete() (string, bool, error) {
	comps := m.key()
	mdelete(m.root, comps)
	_, err := m.fs.DeleteObject(bg, ObjectName{m.bucket, m.full(comps)}, DeleteOptions{})
	return fmt.Sprintf("delete %q", comps), true, err
}

// deleteMany is one transaction for so few keys.
func (m *modelRun) deleteMany() (string, bool, error) {
	var keys []string
	for range 1 + m.r.IntN(5) {
		comps := m.key()
		mdelete(m.root, comps)
		keys = append(keys, m.full(comps))
	}
	results, err := m.fs.DeleteObjects(bg, m.bucket, keys)
	for _, r := range results {
		if err == nil {
			err = r.Err
		}
	}
	return fmt.Sprintf("delete %q", keys), true, err
}
