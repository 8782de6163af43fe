package apps

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// richTree has whatever a file can have: kinds, modes, owners, links, holes,
// times, attributes, ACLs, long and odd names.
func richTree(t *testing.T, m *mount) string {
	t.Helper()
	top := filepath.Join(m.base, "rich")
	must(t, os.MkdirAll(filepath.Join(top, "a/b/c"), 0o755))
	in := func(name string) string { return filepath.Join(top, name) }
	m.run(m.base, "cp", "-a", filepath.Join(goRoot(t), "src/go"), in("go"))
	for i, size := range []int{0, 1, 4095, 4096, 100_000, 3 << 20} {
		b := make([]byte, size)
		for j := range b {
			b[j] = byte(j * (i + 3) >> 4)
		}
		must(t, os.WriteFile(in(fmt.Sprintf("a/size%d", size)), b, 0o644))
	}
	for i, name := range []string{strings.Repeat("n", 255), " space ", "new\nline", "\xff\xfe", "ünï", "-dash", "back\\slash"} {
		must(t, os.WriteFile(in("a/b/"+name), fmt.Appendf(nil, "%d", i), 0o644))
	}
	for mode := uint32(0o4400); mode <= 0o7777; mode += 0o513 {
		p := in(fmt.Sprintf("a/mode%o", mode))
		must(t, os.WriteFile(p, []byte("m"), 0o644))
		must(t, os.Chown(p, int(mode), int(mode)+1))
		must(t, unix.Chmod(p, mode))
	}
	for i := range 5 {
		must(t, os.Link(in("a/size4096"), in(fmt.Sprintf("a/b/hard%d", i))))
		must(t, os.Symlink(strings.Repeat("../", i)+"size1", in(fmt.Sprintf("a/b/c/soft%d", i))))
	}
	must(t, os.Symlink(strings.Repeat("t", 4000), in("a/long")))
	must(t, os.Lchown(in("a/long"), 5, 6))
	must(t, unix.Mkfifo(in("a/fifo"), 0o640))
	must(t, unix.Mknod(in("a/dev"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))))
	f, err := os.Create(in("a/sparse"))
	must(t, err)
	_, err = f.WriteAt([]byte("far"), 50<<20)
	must(t, err)
	must(t, f.Close())
	must(t, unix.Setxattr(in("a/size1"), "user.one", []byte("value"), 0))
	must(t, unix.Setxattr(in("a"), "user.dir", []byte{0, 1, 255}, 0))
	must(t, unix.Setxattr(in("a/size4096"), "trusted.t", []byte("t"), 0))
	m.run(m.base, "setfacl", "-m", "u:1001:rw,g:1005:r", in("a/size100000"))
	m.run(m.base, "setfacl", "-d", "-m", "u:1001:rwx", in("a/b/c"))
	for i, p := range []string{"a/size0", "a/size1", "a/fifo", "a/b/c", "a/b", "a"} {
		stamp := time.Unix(1_000_000_000+int64(i), 123_456_789)
		must(t, os.Chtimes(in(p), stamp, stamp))
	}
	return top
}

// TestTar carries a rich tree into the mount and out again.
func TestTar(t *testing.T) {
	need(t, "tar", "setfacl", "rsync")
	m := newMount(t)
	tree := richTree(t, m)
	flags := []string{"--xattrs", "--xattrs-include=*", "--acls", "--sparse", "--format=pax", "--numeric-owner"}
	pack := func(dir, archive string) {
		m.run(dir, "tar", append(append([]string{"-cpf", archive}, flags...), ".")...)
	}
	unpack := func(dir, archive string) {
		must(t, os.Mkdir(dir, 0o755))
		m.run(dir, "tar", append([]string{"-xpf", archive, "--same-owner"}, flags...)...)
	}
	pack(tree, m.base+"/one.tar")
	inside, outside := filepath.Join(m.dir, "tree"), filepath.Join(m.base, "out")
	unpack(inside, m.base+"/one.tar")
	m.run(inside, "tar", append([]string{"--diff", "-f", m.base + "/one.tar"}, flags...)...)
	same(t, m, tree, inside)
	pack(inside, filepath.Join(m.dir, "two.tar")) // the archive is in the mount too
	unpack(outside, filepath.Join(m.dir, "two.tar"))
	same(t, m, tree, outside)
	if used := blocks(t, filepath.Join(inside, "a/sparse")); used > 1<<20 {
		t.Errorf("the sparse file takes %d bytes", used)
	}
}

func blocks(t *testing.T, name string) int64 {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Stat(name, &st))
	return st.Blocks * 512
}

// same asks rsync for any difference: content, times, owners, modes, links,
// devices, ACLs, attributes.
func same(t *testing.T, m *mount, a, b string) {
	t.Helper()
	out := m.run(m.base, "rsync", "-aHAXnci", "--numeric-ids", "--delete", a+"/", b+"/")
	if strings.TrimSpace(out) != "" {
		t.Errorf("%s and %s differ:\n%s", a, b, tail(out))
	}
}

// TestRsync copies a rich tree in and out; each second run transfers nothing.
func TestRsync(t *testing.T) {
	need(t, "rsync", "setfacl")
	m := newMount(t)
	tree := richTree(t, m)
	inside, outside := filepath.Join(m.dir, "tree"), filepath.Join(m.base, "out")
	sync := func(a, b string) string {
		return m.run(m.base, "rsync", "-aHAX", "--numeric-ids", "--delete", "--itemize-changes", a+"/", b+"/")
	}
	for _, c := range [][2]string{{tree, inside}, {inside, outside}} {
		if out := sync(c[0], c[1]); !strings.Contains(out, "a/size1") {
			t.Errorf("the first run transferred nothing:\n%s", tail(out))
		}
		if out := sync(c[0], c[1]); strings.TrimSpace(out) != "" {
			t.Errorf("the second run transferred:\n%s", tail(out))
		}
		same(t, m, c[0], c[1])
	}
	same(t, m, tree, outside)
	// In place, with deltas, over a change.
	f, err := os.OpenFile(filepath.Join(tree, "a/size3145728"), os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteAt([]byte("changed"), 1_500_000)
	must(t, err)
	must(t, f.Close())
	m.run(m.base, "rsync", "-aHAX", "--inplace", "--no-whole-file", tree+"/", inside+"/")
	same(t, m, tree, inside)
}
