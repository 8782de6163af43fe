package naming

import (
	"errors"
	"strings"
	"testing"

	"ogw/vfs/internal/fserr"
)

func TestPosixNames(t *testing.T) {
	long := strings.Repeat("n", 256)
	for _, c := range []struct {
		stored   string
		dir      bool
		shadowed bool
		shown    string // "" if it must be a hash
	}{
		{"a", false, false, "a"},
		{"a", false, true, ".ogw~f~a"},
		{"a", true, true, "a"},
		{"", true, false, ".ogw~e~"},
		{".", false, false, ".ogw~e~."},
		{"..", true, false, ".ogw~e~.."},
		{"..", false, true, ".ogw~f~.."},
		{"...", false, false, "..."},
		{"a%b", false, false, "a%b"},
		{"a%b", false, true, ".ogw~f~a%25b"},
		{"a\x00%b", false, false, ".ogw~e~a%00%25b"},
		{".ogw~", false, false, ".ogw~e~.ogw~"},
		{".ogw~f~a", false, false, ".ogw~e~.ogw~f~a"},
		{".ogw", false, false, ".ogw"},
		{"\xff\xfe", false, false, "\xff\xfe"},
		{long[:255], false, false, long[:255]},
		{long[:248], false, true, ".ogw~f~" + long[:248]},
		{long[:249], false, true, ""},
		{long, false, false, ""},
		{long, true, false, ""},
	} {
		got := Shown(c.stored, c.dir, c.shadowed)
		if c.shown == "" {
			if !strings.HasPrefix(got, hashPrefix) || len(got) != len(hashPrefix)+32 || !MaybeHashed(c.stored, c.dir) {
				t.Errorf("%.20q of %d bytes is shown as %q", c.stored, len(c.stored), got)
			}
			continue
		}
		if got != c.shown {
			t.Errorf("%q is shown as %q, want %q", c.stored, got, c.shown)
		}
		p, err := ParsePosix(got)
		if err != nil || p.Stored != c.stored || p.File != (c.shadowed && !c.dir) || p.Hash != nil {
			t.Errorf("%q parses to %+v, %v", got, p, err)
		}
	}
}

func TestPosixNamesRefused(t *testing.T) {
	for name, target := range map[string]error{
		"": fserr.ErrInvalid, ".": fserr.ErrInvalid, "..": fserr.ErrInvalid, "a/b": fserr.ErrInvalid, "a\x00": fserr.ErrInvalid,
		strings.Repeat("x", 256):            fserr.ErrNameTooLong,
		".ogw~":                             fserr.ErrInvalid,
		".ogw~x":                            fserr.ErrInvalid,
		".ogw~e~a":                          fserr.ErrInvalid, // needs no escape
		".ogw~e~%00%":                       fserr.ErrInvalid,
		".ogw~e~%41%00":                     fserr.ErrInvalid,
		".ogw~f~":                           fserr.ErrInvalid,
		".ogw~f~%":                          fserr.ErrInvalid,
		".ogw~h~":                           fserr.ErrInvalid,
		".ogw~h~" + strings.Repeat("A", 32): fserr.ErrInvalid,
		".ogw~h~" + strings.Repeat("a", 31): fserr.ErrInvalid,
		".ogw~h~" + strings.Repeat("a", 33): fserr.ErrInvalid,
		".ogw~h~" + strings.Repeat("a", 32) + "\n":                           fserr.ErrInvalid,
		".ogw~h~" + strings.Repeat("a", 16) + "\n" + strings.Repeat("a", 16): fserr.ErrInvalid,
	} {
		if _, err := ParsePosix(name); !errors.Is(err, target) {
			t.Errorf("%q: %v, want %v", name, err, target)
		}
	}
}

// FuzzEscape checks that shown names and entries map one to one.
func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", ".", "..", "a", "%00", "\x00", ".ogw~e~", ".ogw~h~aaaa", strings.Repeat("%", 250)} {
		f.Add(s, true, true)
		f.Add(s, false, true)
		f.Add(s, false, false)
	}
	f.Fuzz(func(t *testing.T, s string, dir, shadowed bool) {
		// What parses is shown as it was written.
		if p, err := ParsePosix(s); err == nil && p.Hash == nil {
			if got := Shown(p.Stored, false, p.File); got != s && !strings.HasPrefix(got, hashPrefix) {
				t.Errorf("%q parses to %+v, shown as %q", s, p, got)
			}
		}
		// What is shown parses to what it was.
		if strings.Contains(s, "/") || len(s) > 1024 || s == "" && !dir {
			return
		}
		shown := Shown(s, dir, shadowed)
		p, err := ParsePosix(shown)
		if err != nil {
			t.Fatalf("%q is shown as %q: %v", s, shown, err)
		}
		if p.Hash != nil {
			if h := Hash(s, dir); string(h[:]) != string(p.Hash) || !MaybeHashed(s, dir) {
				t.Errorf("%q: hash differs or is not indexed", s)
			}
			return
		}
		if p.Stored != s || p.File != (shadowed && !dir) {
			t.Errorf("%q is shown as %q, which parses to %+v", s, shown, p)
		}
	})
}
