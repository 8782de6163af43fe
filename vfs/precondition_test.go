package vfs

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"ogw/vfs/internal/objects"
)

func TestPreconditions(t *testing.T) {
	at := time.Unix(1_000_000, 500_000_000)
	before, same, after := at.Add(-2*time.Second), at.Truncate(time.Second), at.Add(2*time.Second)
	tag := func(s ...ETag) []ETag { return s }
	for _, c := range []struct {
		name        string
		c           Preconditions
		read, write error
	}{
		{"none", Preconditions{}, nil, nil},
		{"match", Preconditions{IfMatch: tag("x", "e")}, nil, nil},
		{"match any", Preconditions{IfMatch: tag("*")}, nil, nil},
		{"match other", Preconditions{IfMatch: tag("x", "y")}, ErrPrecondition, ErrPrecondition},
		{"match weak", Preconditions{IfMatch: tag("W/e")}, ErrPrecondition, ErrPrecondition},
		{"none match", Preconditions{IfNoneMatch: tag("x", "e")}, ErrNotModified, ErrPrecondition},
		{"none match any", Preconditions{IfNoneMatch: tag("*")}, ErrNotModified, ErrPrecondition},
		{"none match weak", Preconditions{IfNoneMatch: tag("W/e")}, ErrNotModified, ErrPrecondition},
		{"none match other", Preconditions{IfNoneMatch: tag("x")}, nil, nil},
		{"modified since before", Preconditions{IfModifiedSince: before}, nil, nil},
		{"modified since then", Preconditions{IfModifiedSince: same}, ErrNotModified, nil},
		{"modified since after", Preconditions{IfModifiedSince: after}, ErrNotModified, nil},
		{"unmodified since before", Preconditions{IfUnmodifiedSince: before}, ErrPrecondition, ErrPrecondition},
		{"unmodified since then", Preconditions{IfUnmodifiedSince: same}, nil, nil},
		{"unmodified since after", Preconditions{IfUnmodifiedSince: after}, nil, nil},
		{"match beats unmodified", Preconditions{IfMatch: tag("e"), IfUnmodifiedSince: before}, nil, nil},
		{"none match beats modified", Preconditions{IfNoneMatch: tag("x"), IfModifiedSince: after}, nil, nil},
		{"none match holds, modified", Preconditions{IfNoneMatch: tag("e"), IfModifiedSince: before}, ErrNotModified, ErrPrecondition},
		{"match fails first", Preconditions{IfMatch: tag("x"), IfNoneMatch: tag("e")}, ErrPrecondition, ErrPrecondition},
		{"both hold", Preconditions{IfMatch: tag("e"), IfNoneMatch: tag("e")}, ErrNotModified, ErrPrecondition},
	} {
		if err := objects.CheckRead(&c.c, "e", at); !errors.Is(err, c.read) {
			t.Errorf("%s: read: %v, want %v", c.name, err, c.read)
		}
		if err := objects.CheckChange(&c.c, "e", at, 5); !errors.Is(err, c.write) {
			t.Errorf("%s: write: %v, want %v", c.name, err, c.write)
		}
		source := c.read
		if source != nil {
			source = ErrPrecondition
		}
		if err := objects.CheckSource(&c.c, "e", at); !errors.Is(err, source) {
			t.Errorf("%s: source: %v, want %v", c.name, err, source)
		}
	}
}

func TestConditionalOperations(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		old := put(t, fs, "k", "old")
		put(t, fs, "dir/x", "")
		any, own, other := []ETag{"*"}, []ETag{old.ETag}, []ETag{"other"}
		for _, c := range []struct {
			key  string
			c    Preconditions
			want error
		}{
			{"absent", Preconditions{IfMatch: any}, ErrNoSuchKey},
			{"absent", Preconditions{IfMatch: own}, ErrNoSuchKey},
			{"absent/deep/k", Preconditions{IfMatch: own}, ErrNoSuchKey},
			{"dir/", Preconditions{IfMatch: any}, ErrNoSuchKey}, // implied
			{"k", Preconditions{IfMatch: other}, ErrPrecondition},
			{"k", Preconditions{IfNoneMatch: any}, ErrPrecondition},
			{"k", Preconditions{IfNoneMatch: own}, ErrPrecondition},
		} {
			_, err := fs.PutObject(bg, ObjectName{"bucket", c.key}, strings.NewReader("new"), PutOptions{Size: 3, Cond: c.c})
			wantErr(t, err, c.want)
			if len(c.c.IfMatch) > 0 {
				_, err = fs.DeleteObject(bg, ObjectName{"bucket", c.key}, DeleteOptions{Cond: c.c})
				wantErr(t, err, c.want)
			}
		}
		if got := listAll(t, fs); !slices.Equal(got, []string{"dir/x", "k"}) {
			t.Error(got)
		}
		for _, c := range []struct {
			key string
			c   Preconditions
		}{
			{"k", Preconditions{IfMatch: own}}, {"new", Preconditions{IfNoneMatch: any}}, {"dir/", Preconditions{IfNoneMatch: any}},
		} {
			_, err := fs.PutObject(bg, ObjectName{"bucket", c.key}, strings.NewReader("new"), PutOptions{Size: 3, Cond: c.c})
			want(t, err, nil)
		}
		_, err := fs.PutObject(bg, ObjectName{"bucket", "dir/"}, strings.NewReader(""), PutOptions{Cond: Preconditions{IfNoneMatch: any}})
		wantErr(t, err, ErrPrecondition)
		o, err := fs.GetObject(bg, ObjectName{"bucket", "k"}, GetOptions{Cond: Preconditions{IfNoneMatch: any}})
		if !errors.Is(err, ErrNotModified) || o == nil || o.Info.Size != 3 {
			t.Error(o, err)
		}
		info, err := fs.HeadObject(bg, ObjectName{"bucket", "k"}, GetOptions{Cond: Preconditions{IfMatch: other}})
		if !errors.Is(err, ErrPrecondition) || info.Size != 3 {
			t.Error(info, err)
		}
		existed, err := fs.DeleteObject(bg, ObjectName{"bucket", "k"}, DeleteOptions{Cond: Preconditions{IfMatch: []ETag{info.ETag}}})
		if !existed || err != nil {
			t.Error(existed, err)
		}
	})
}
