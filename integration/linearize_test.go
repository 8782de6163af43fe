package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// registerOp is one operation on one key; value "" is absence.
type registerOp struct {
	kind  string // put, get, delete, create (only if absent), remove (only if there)
	key   string
	value string
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
// through S3 and REST, read through both, removed through every door. There
// must be one order that explains it all. (Writes through NFS and FUSE are
// several calls, and no register.)
func TestLinearizable(t *testing.T) {
	s := newServer(t, options{})
	all, mnt := doors(t, s)
	posix := posixDoors(t, s, mnt)
	for i := range linearSeeds {
		seed := uint64(time.Now().UnixNano())
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bucket := fmt.Sprintf("linear-%d", i)
			s.with(t).aws("s3", "mb", "s3://"+bucket)
			testLinearizable(t, s, all, posix, bucket, seed)
		})
	}
}

func testLinearizable(t *testing.T, s *server, all []door, posix []posixDoor, bucket string, seed uint64) {
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
			rnd := rand.New(rand.NewPCG(seed, uint64(id)))
			c := s.sdk()
			for i := range steps {
				op := registerOp{key: fmt.Sprintf("k%d", rnd.IntN(3))}
				call := time.Since(begin).Nanoseconds()
				var out registerResult
				var err error
				switch n := rnd.IntN(10); {
				case n < 3:
					op.kind, op.value = "put", fmt.Sprintf("%d-%d %s", id, i, strings.Repeat("v", rnd.IntN(40000)))
					err = all[rnd.IntN(2)].write(bucket+"/"+op.key, op.value)
				case n < 4:
					op.kind, op.value = "create", fmt.Sprintf("%d-%d", id, i)
					out.refused, err = createOnly(c, bucket, op.key, op.value)
				case n < 5:
					op.kind = "delete"
					err = deleteKey(c, bucket, op.key)
				case n < 6:
					op.kind = "remove"
					err = posix[rnd.IntN(len(posix))].remove(bucket + "/" + op.key)
					if out.refused = isAbsent(err); out.refused {
						err = nil
					}
				case n < 7:
					op.kind = "get"
					out.value, err = restGet("http://" + s.rest + "/" + bucket + "/" + op.key)
					if err != nil && strings.Contains(err.Error(), "404") {
						out.value, err = "", nil
					}
				default:
					op.kind = "get"
					out.value, err = getOrAbsent(c, bucket, op.key)
				}
				if err != nil {
					t.Errorf("client %d: %+v: %v", id, op, err)
					return
				}
				done := time.Since(begin).Nanoseconds()
				mu.Lock()
				history = append(history, porcupine.Operation{ClientId: id, Input: op, Output: out, Call: call, Return: done})
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
	if res := porcupine.CheckOperationsTimeout(registerModel(), history, time.Minute); res != porcupine.Ok {
		t.Errorf("history of %d operations: %v", len(history), res)
	}
}

// isAbsent tells ENOENT of either POSIX door.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || err != nil && strings.Contains(err.Error(), "file does not exist")
}

func createOnly(c *s3.Client, bucket, key, body string) (refused bool, err error) {
	star := "*"
	_, err = c.PutObject(context.Background(), &s3.PutObjectInput{Bucket: &bucket, Key: &key,
		Body: strings.NewReader(body), IfNoneMatch: &star})
	if err != nil && strings.Contains(err.Error(), "PreconditionFailed") {
		return true, nil
	}
	return false, err
}

func deleteKey(c *s3.Client, bucket, key string) error {
	_, err := c.DeleteObject(context.Background(), &s3.DeleteObjectInput{Bucket: &bucket, Key: &key})
	return err
}

func getOrAbsent(c *s3.Client, bucket, key string) (string, error) {
	out, err := c.GetObject(context.Background(), &s3.GetObjectInput{Bucket: &bucket, Key: &key})
	var none *types.NoSuchKey
	if errors.As(err, &none) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer out.Body.Close()
	b, err := io.ReadAll(out.Body)
	return string(b), err
}
