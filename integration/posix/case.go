package posix

import (
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

// Feature is something that not every file system has.
type Feature string

// Features that a Config may lack.
const (
	ACL         Feature = "acl"         // POSIX ACLs as system.posix_acl_*
	Atime       Feature = "atime"       // reads move access times (relatime)
	Atomic      Feature = "atomic"      // an append is atomic between descriptors
	Chattr      Feature = "chattr"      // file flags, as lsattr and chattr have them
	Devices     Feature = "devices"     // device nodes can be opened (no nodev)
	DirLinks    Feature = "dirlinks"    // st_nlink of a directory counts its subdirectories
	Direct      Feature = "direct"      // O_DIRECT
	Exec        Feature = "exec"        // ETXTBSY
	Fallocate   Feature = "fallocate"   // allocate, keep size, punch hole
	Flags       Feature = "renameflags" // RENAME_NOREPLACE and RENAME_EXCHANGE
	Holes       Feature = "holes"       // SEEK_HOLE finds holes
	Own         Feature = "own"         // the own attributes and reserved names of ogw
	RemovedDirs Feature = "removeddirs" // a removed directory that is open answers ENOENT
	Kept        Feature = "kept"        // what was removed answers while it is referred to
	Security    Feature = "security"    // security.capability is revoked by writes
	Tmpfile     Feature = "tmpfile"     // O_TMPFILE
	Xattr       Feature = "xattr"       // user.*, trusted.*, security.*
	XattrBig    Feature = "xattrbig"    // values of 64 KiB
	ZeroRange   Feature = "zerorange"   // FALLOC_FL_ZERO_RANGE
)

// Config says where the suite runs and what is missing there.
type Config struct {
	// Dir is a directory that root owns and others may search.
	Dir string
	// Other is a directory on another file system, for EXDEV. "" leaves that
	// out.
	Other string
	// Without lists what the file system does not have.
	Without []Feature
	// Expected are failures that its protocol makes unavoidable: expressions
	// over "TEST: MESSAGE". One that matches nothing is an error.
	Expected []*regexp.Regexp
}

// T is one case: its own directory, which everybody may write, is passed
// beside it.
type T struct {
	*testing.T
	run     *run
	callers map[string]*caller
	shown   atomic.Int64
}

// run is one run of the suite.
type run struct {
	Config
	lacks  map[Feature]bool
	checks atomic.Int64
	failed atomic.Int64
	met    []atomic.Int64 // how often each of Expected matched
}

type namedCase struct {
	name string
	run  func(t *T, d string)
}

func newRun(c Config) *run {
	r := &run{Config: c, lacks: map[Feature]bool{}, met: make([]atomic.Int64, len(c.Expected))}
	for _, f := range c.Without {
		r.lacks[f] = true
	}
	return r
}

func (r *run) missing(needs []Feature) string {
	for _, f := range needs {
		if r.lacks[f] {
			return string(f)
		}
	}
	return ""
}

// has reports whether the file system has a feature; where it has not, the case
// leaves out what needs it.
func (t *T) has(f Feature) bool { return !t.run.lacks[f] }

// ParseFeatures splits a list like "acl,xattr".
func ParseFeatures(list string) (fs []Feature) {
	for f := range strings.SplitSeq(list, ",") {
		if f = strings.TrimSpace(f); f != "" {
			fs = append(fs, Feature(f))
		}
	}
	return fs
}

// maxShown failures are printed in full for one test; thousands of lines
// would hide the first.
const maxShown = 25

// expected reports whether a failure is one of those that must be.
func (r *run) expected(message string) bool {
	for i, e := range r.Expected {
		if e.MatchString(message) {
			r.met[i].Add(1)
			return true
		}
	}
	return false
}

// ParseExpected reads a list of expressions, one a line.
func ParseExpected(list string) (es []*regexp.Regexp, err error) {
	for line := range strings.SplitSeq(list, "\n") {
		if line == "" {
			continue
		}
		e, err := regexp.Compile(line)
		if err != nil {
			return nil, err
		}
		es = append(es, e)
	}
	return es, nil
}

// failf counts and reports a failed check.
func (t *T) failf(format string, args ...any) {
	t.Helper()
	if t.run.expected(t.Name() + ": " + fmt.Sprintf(format, args...)) {
		return
	}
	t.run.failed.Add(1)
	if t.shown.Add(1) > maxShown {
		t.Fail()
		return
	}
	t.T.Errorf(format, args...)
}

// Errorf reports like failf.
func (t *T) Errorf(format string, args ...any) {
	t.Helper()
	t.failf(format, args...)
}
