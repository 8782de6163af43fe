package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	kind  string // put, get, delete, create (only if absent)
	key   string
	value string
}

type registerResult struct {
	value   string
	refused bool // a precondition failed
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

// TestLinearizable records what concurrent clients saw of a few keys through
// S3, REST, NFS and FUSE, and wants one order that explains it all.
func TestLinearizable(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	s := newServer(t, options{})
	s.aws("s3", "mb", "s3://linear")
	all, _ := doors(t, s)
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
					err = all[rnd.IntN(2)].write("linear/"+op.key, op.value)
				case n < 4:
					op.kind, op.value = "create", fmt.Sprintf("%d-%d", id, i)
					out.refused, err = createOnly(c, "linear", op.key, op.value)
				case n < 5:
					op.kind = "delete"
					err = deleteKey(c, "linear", op.key)
				default:
					op.kind = "get"
					out.value, err = getOrAbsent(c, "linear", op.key)
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
