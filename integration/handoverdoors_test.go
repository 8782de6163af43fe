package integration

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"ogw/integration/doors"
	"ogw/integration/testenv"
)

const handDoorsBucket = "handover"

// TestHandOverDoors lets processes that have all doors of a server, and two
// mounts that do not share their superblock, change objects in turn: one changes
// something through one door, notifies the other, and that one finds it by its next
// request through another door.
func TestHandOverDoors(t *testing.T) {
	s := newServer(t, options{})
	one, two := s.Mount("-o", "io_uring=off"), s.Mount("-o", "io_uring=off,entry_timeout=50")
	if err := doors.NewMount(one).Mkdir(handDoorsBucket); err != nil {
		t.Fatal(err)
	}
	place := strings.Join([]string{s.S3, s.KeyID, s.Secret, s.REST, s.NFS, one, two}, ",")
	handOver(t, "TestHandOverDoorsChild", place, place, testenv.Count(t, "OGW_HANDOVERS", handOverSteps))
	checkClean(t, s)
}

// TestHandOverDoorsChild is a process of TestHandOverDoors.
func TestHandOverDoorsChild(t *testing.T) {
	handChild(t, func(place, prefix string) handWorker {
		f := strings.Split(place, ",")
		nfs, err := doors.DialNFS(f[4], "/")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nfs.Close)
		return &handCaller{prefix: prefix, state: map[string]string{}, r: rand.New(rand.NewPCG(1, 1)),
			doors: []doors.Door{doors.NewS3(f[0], f[1], f[2]), doors.NewREST(f[3]), nfs, doors.NewMount(f[5]), doors.NewMount(f[6])}}
	})
}

// handCaller is a process with several doors, and what it knows of its pair's
// objects.
type handCaller struct {
	prefix string
	state  map[string]string
	doors  []doors.Door
	r      *rand.Rand // which door looks
}

func (c *handCaller) at(name string) string { return filepath.Join(handDoorsBucket, c.prefix+name) }

// handDoorOps are what a step does. A door that cannot do it writes instead.
var handDoorOps = []string{"write", "write", "write", "remove", "remove", "rename", "replace", "copy"}

func (c *handCaller) choose(r *rand.Rand, seq uint64) handStep {
	s := handStep{Op: handDoorOps[r.IntN(len(handDoorOps))], Name: fmt.Sprintf("f%d", r.IntN(handOverFiles)),
		To: fmt.Sprintf("f%d", r.IntN(handOverFiles)), Seq: seq, Size: r.IntN(handOverBytes), Door: r.IntN(len(c.doors))}
	_, there := c.state[s.Name]
	_, posix := c.doors[s.Door].(doors.Posix)
	_, store := c.doors[s.Door].(doors.Store)
	can := map[string]bool{"write": true, "remove": there, "rename": there && posix && s.To != s.Name, "replace": posix,
		"copy": there && store && s.To != s.Name}
	if !can[s.Op] {
		s.Op = "write"
	}
	return s
}

func (c *handCaller) body(s handStep) string { return string(handData(s.Seq, s.Size)) }

func (c *handCaller) apply(s handStep) {
	switch s.Op {
	case "write", "replace":
		c.state[s.Name] = c.body(s)
	case "copy":
		c.state[s.To] = c.state[s.Name]
	case "rename":
		c.state[s.To] = c.state[s.Name]
		delete(c.state, s.Name)
	case "remove":
		delete(c.state, s.Name)
	}
}

func (c *handCaller) do(s handStep) error {
	defer c.apply(s)
	door, name := c.doors[s.Door], c.at(s.Name)
	switch s.Op {
	case "write":
		return door.Write(name, c.body(s))
	case "copy":
		return door.(doors.Store).Copy(name, c.at(s.To))
	case "rename":
		return door.(doors.Posix).Rename(name, c.at(s.To))
	case "replace":
		p := door.(doors.Posix)
		return errors.Join(p.Write(c.at("new"), c.body(s)), p.Rename(c.at("new"), name))
	case "remove":
		if p, ok := door.(doors.Posix); ok {
			return p.Remove(name)
		}
		return door.(doors.Object).Delete(name)
	}
	return fmt.Errorf("unknown step %s", s.Op)
}

// check looks through another door than the one of the change.
func (c *handCaller) check(s handStep) error {
	at := (s.Door + 1 + c.r.IntN(len(c.doors)-1)) % len(c.doors)
	door := c.doors[at]
	names := []string{s.Name}
	switch s.Op {
	case "rename", "copy":
		names = append(names, s.To)
	case "replace":
		names = append(names, "new")
	}
	var errs []error
	for _, name := range names {
		errs = append(errs, c.checkName(door, name))
	}
	if s.Seq%8 < 2 {
		errs = append(errs, c.checkList(door))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("through %s %d: %w", door.Name(), at, err)
	}
	return nil
}

func (c *handCaller) checkName(door doors.Door, name string) error {
	want, there := c.state[name]
	got, err := door.Read(c.at(name))
	switch {
	case there && err != nil:
		return err
	case there:
		return handDiffers(name, []byte(got), []byte(want))
	case !errors.Is(err, doors.ErrAbsent):
		return fmt.Errorf("read of %s, which is gone: %d bytes, %v", name, len(got), err)
	}
	return nil
}

func (c *handCaller) checkList(door doors.Door) (err error) {
	var names []string
	switch d := door.(type) {
	case doors.Posix:
		names, err = d.List(handDoorsBucket)
	case doors.Store:
		names, err = d.Keys(handDoorsBucket, "", "/", 1000)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	got := map[string]bool{}
	for _, name := range names {
		if name, ours := strings.CutPrefix(name, c.prefix); ours {
			got[name] = true
		}
	}
	return handListed(got, c.state)
}
