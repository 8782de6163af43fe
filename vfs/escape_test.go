package vfs

import (
	"errors"
	"strings"
	"testing"
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
		got := shownName(c.stored, c.dir, c.shadowed)
		if c.shown == "" {
			if !strings.HasPrefix(got, hashPrefix) || len(got) != len(hashPrefix)+32 || !maybeHashed(c.stored, c.dir) {
				t.Errorf("%.20q of %d bytes is shown as %q", c.stored, len(c.stored), got)
			}
			continue
		}
		if got != c.shown {
			t.Errorf("%q is shown as %q, want %q", c.stored, got, c.shown)
		}
		p, err := parsePosixName(got)
		if err != nil || p.stored != c.stored || p.file != (c.shadowed && !c.dir) || p.hash != nil {
			t.Errorf("%q parses to %+v, %v", got, p, err)
		}
	}
}

func TestPosixNamesRefused(t *testing.T) {
	for name, target := range map[string]error{
		"": ErrInvalid, ".": ErrInvalid, "..": ErrInvalid, "a/b": ErrInvalid, "a\x00": ErrInvalid,
		strings.Repeat("x", 256):            ErrNameTooLong,
		".ogw~":                             ErrInvalid,
		".ogw~x":                            ErrInvalid,
		".ogw~e~a":                          ErrInvalid, // needs no escape
		".ogw~e~%00%":                       ErrInvalid,
		".ogw~e~%41%00":                     ErrInvalid,
		".ogw~f~":                           ErrInvalid,
		".ogw~f~%":                          ErrInvalid,
		".ogw~h~":                           ErrInvalid,
		".ogw~h~" + strings.Repeat("A", 32): ErrInvalid,
		".ogw~h~" + strings.Repeat("a", 31): ErrInvalid,
		".ogw~h~" + strings.Repeat("a", 33): ErrInvalid,
		".ogw~h~" + strings.Repeat("a", 32) + "\n":                           ErrInvalid,
		".ogw~h~" + strings.Repeat("a", 16) + "\n" + strings.Repeat("a", 16): ErrInvalid,
	} {
		if _, err := parsePosixName(name); !errors.Is(err, target) {
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
		if p, err := parsePosixName(s); err == nil && p.hash == nil {
			if got := shownName(p.stored, false, p.file); got != s && !strings.HasPrefix(got, hashPrefix) {
				t.Errorf("%q parses to %+v, shown as %q", s, p, got)
			}
		}
		// What is shown parses to what it was.
		if strings.Contains(s, "/") || len(s) > MaxNameBytes || s == "" && !dir {
			return
		}
		shown := shownName(s, dir, shadowed)
		p, err := parsePosixName(shown)
		if err != nil {
			t.Fatalf("%q is shown as %q: %v", s, shown, err)
		}
		if p.hash != nil {
			if h := nameHash(s, dir); string(h[:]) != string(p.hash) || !maybeHashed(s, dir) {
				t.Errorf("%q: hash differs or is not indexed", s)
			}
			return
		}
		if p.stored != s || p.file != (shadowed && !dir) {
			t.Errorf("%q is shown as %q, which parses to %+v", s, shown, p)
		}
	})
}
