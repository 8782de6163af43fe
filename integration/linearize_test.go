package integration

import (
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"ogw/integration/doors"
)

// registerOp is one operation on one key; value "" is absence.
type registerOp struct {
	// put, get, delete, create (only if absent), swap (only if it is old),
	// remove (only if there)
	kind  string
	key   string
	value string
	old   string
}

type registerResult struct {
	value   string
	refused bool // a precondition failed, or there was nothing to remove
}

// registerModel is a map of independent registers.
func registerModel() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			byKey := map[string][]porcupine.Operation{}
			for _, op := range history {
				k := op.Input.(registerOp).key
				byKey[k] = append(byKey[k], op)
			}
			var parts [][]porcupine.Operation
			for _, p := range byKey {
				parts = append(parts, p)
			}
			return parts
		},
		Init: func() any { return "" },
		Step: func(state, input, output any) (bool, any) {
			value, in, out := state.(string), input.(registerOp), output.(registerResult)
			switch in.kind {
			case "get":
				return out.value == value, value
			case "put":
				return true, in.value
			case "delete":
				return true, ""
			case "remove":
				return out.refused == (value == ""), ""
			case "swap":
				if out.refused {
					return value != in.old, value
				}
				return value == in.old, in.value
			default: // create
				if out.refused {
					return value != "", value
				}
				return value == "", in.value
			}
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
	}
}

// linearSeeds is how many histories one run looks at.
const linearSeeds = 3

// TestLinearizable records what concurrent clients saw of a few keys: written
// through S3 and REST, copied and uploaded in parts, under preconditions too,
// read through both, removed through every door. There must be one order that
// explains it all. (Writes through NFS and FUSE are
// several calls, and no register.)
func TestLinearizable(t *testing.T) {
	s := newServer(t, options{})
	d := s.doors(t)
	for i := range linearSeeds {
		seed := uint64(time.Now().UnixNano())
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel() // most of it waits for the disk
			bucket := fmt.Sprintf("linear-%d", i)
			s.with(t).makeBucket(bucket)
			testLinearizable(t, d, bucket, seed)
		})
	}
}

func testLinearizable(t *testing.T, d *serverDoors, bucket string, seed uint64) {
	var (
		mu      sync.Mutex
		history []porcupine.Operation
		wg      sync.WaitGroup
	)
	const clients, steps = 8, 150
	begin := time.Now()
	for id := range clients {
		wg.Add(1)
		go func() {
			defer wg.Done()
			c := &registerClient{d: d, bucket: bucket, id: id, rnd: rand.New(rand.NewPCG(seed, uint64(id)))}
			for i := range steps {
				run := c.next(i)
				call := time.Since(begin).Nanoseconds()
				out, err := run()
				if err != nil {
					t.Errorf("client %d: %+v: %v", id, c.op, err)
					return
				}
				done := time.Since(begin).Nanoseconds()
				mu.Lock()
				history = append(history, porcupine.Operation{ClientId: id, Input: c.op, Output: out, Call: call, Return: done})
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
	if res := porcupine.CheckOperationsTimeout(registerModel(), history, time.Minute); res != porcupine.Ok {
		t.Errorf("history of %d operations: %v", len(history), res)
	}
}

// registerClient is one of the clients.
type registerClient struct {
	d      *serverDoors
	bucket string
	id     int
	rnd    *rand.Rand
	op     registerOp
	seen   [linearKeys]string // what it last read of each key
}

const (
	linearKeys = 3
	// inParts begins the values of multipart uploads: their ETag is not the
	// MD5 of the value.
	inParts = "parts "
)

// next decides on the step i and returns what runs it, which is prepared so
// far that only the call itself is timed.
func (c *registerClient) next(i int) func() (registerResult, error) {
	k := c.rnd.IntN(linearKeys)
	c.op = registerOp{key: fmt.Sprintf("k%d", k), value: fmt.Sprintf("%d-%d %s", c.id, i, strings.Repeat("v", c.rnd.IntN(40000)))}
	path := c.bucket + "/" + c.op.key
	switch c.rnd.IntN(14) {
	case 0, 1, 2:
		c.op.kind = "put"
		return plain(func() error { return pick[doors.Door](c, c.d.rest, c.d.s3).Write(path, c.op.value) })
	case 3:
		c.op.kind = "create"
		return refusable(func() error { return c.d.s3.WriteIf(path, c.op.value, doors.Cond{IfNone: true}) })
	case 4:
		if c.seen[k] == "" || strings.HasPrefix(c.seen[k], inParts) {
			break
		}
		c.op.kind, c.op.old = "swap", c.seen[k]
		sum := md5.Sum([]byte(c.op.old))
		return refusable(func() error {
			return c.d.s3.WriteIf(path, c.op.value, doors.Cond{IfMatch: hex.EncodeToString(sum[:])})
		})
	case 5:
		c.op.kind = "put"
		return c.copied(path)
	case 6, 7:
		c.op.kind, c.op.value = pick(c, "put", "create"), inParts+c.op.value
		return c.uploaded(path)
	case 8:
		c.op.kind = "delete"
		return plain(func() error { return c.d.s3.Delete(path) })
	case 9:
		c.op.kind = "delete"
		return plain(func() error { return c.d.s3.DeleteMany(c.bucket, []string{c.op.key, "none"}) })
	case 10:
		c.op.kind = "remove"
		return refusable(func() error { return pick(c, c.d.posix()...).Remove(path) })
	}
	c.op.kind = "get"
	d := pick[doors.Door](c, c.d.rest, c.d.s3)
	return func() (registerResult, error) {
		value, err := d.Read(path)
		if errors.Is(err, doors.ErrAbsent) {
			value, err = "", nil
		}
		c.seen[k] = value
		return registerResult{value: value}, err
	}
}

// copied is a put by a copy of an object of its own.
func (c *registerClient) copied(path string) func() (registerResult, error) {
	source := fmt.Sprintf("%s/source-%d", c.bucket, c.id)
	prepared := c.d.s3.Write(source, c.op.value)
	return plain(func() error { return errors.Join(prepared, c.d.s3.Copy(source, path)) })
}

// uploaded is a put or a create by a multipart upload.
func (c *registerClient) uploaded(path string) func() (registerResult, error) {
	u, err := c.d.s3.Upload(path)
	if err != nil {
		return plain(func() error { return err })
	}
	etag, err := u.Part(1, c.op.value)
	return refusable(func() error {
		if err != nil {
			return err
		}
		_, err := u.Complete([]string{etag}, doors.Cond{IfNone: c.op.kind == "create"})
		if errors.Is(err, doors.ErrRefused) {
			return errors.Join(err, u.Abort())
		}
		return err
	})
}

func plain(run func() error) func() (registerResult, error) {
	return func() (registerResult, error) { return registerResult{}, run() }
}

// refusable is for what fails if there is nothing, or something.
func refusable(run func() error) func() (registerResult, error) {
	return func() (registerResult, error) {
		err := run()
		if errors.Is(err, doors.ErrRefused) || errors.Is(err, doors.ErrAbsent) {
			return registerResult{refused: true}, nil
		}
		return registerResult{}, err
	}
}

func pick[T any](c *registerClient, list ...T) T { return list[c.rnd.IntN(len(list))] }
