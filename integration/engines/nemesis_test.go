package engines

import (
	"bytes"
	"context"

	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/minio/minio-go/v7"

	"ogw/integration/testenv"
)

const (
	// nemesisTime is how long faults go on by default; OGW_NEMESIS has another time.
	nemesisTime = 40 * time.Second
	// nemesisGateways are beside one another.
	nemesisGateways = 3
	nemesisClients  = 6
	// A key is used for nemesisTurn, so that its history stays short.
	nemesisKeys = 4
	nemesisTurn = 5 * time.Second
	// nemesisLong is longer than others wait before they put a gateway out.
	nemesisLong = 15 * time.Second
	// opTimeout is when a client gives an operation up.
	opTimeout = 4 * time.Second
)

// TestNemesis has gateways beside one another killed, stopped, and cut off from the
// metadata and from the blobs, while clients write and read a few keys through all of them. What was
// acknowledged is there, and one order explains all answers.
func TestNemesis(t *testing.T) { onMetadata(t, testNemesis) }

func testNemesis(t *testing.T, x *shared) {
	x.manyGateways()
	n := &nemesis{t: t, x: x, begin: time.Now(), seed: uint64(time.Now().UnixNano())}
	t.Logf("seed %d", n.seed)
	n.start()
	n.load()
	n.heal()
	n.judge()
}

type nemesis struct {
	t     *testing.T
	x     *shared
	begin time.Time
	seed  uint64
	nodes []*node

	mu      sync.Mutex
	history []porcupine.Operation
	unknown int // operations whose outcome no client knows
	refused int
}

// node is a gateway and its ways to the metadata and to the blobs.
type node struct {
	server *testenv.Server
	relay  *relay
	blobs  *relay
	client *minio.Client
}

// start starts the gateways, each with ways of its own to what they share.
func (n *nemesis) start() {
	n.t.Helper()
	u, err := url.Parse(n.x.meta.url)
	if err != nil {
		n.t.Fatal(err)
	}
	var first *testenv.Server
	for range nemesisGateways {
		r, blobs := newRelay(n.t, u.Host), newRelay(n.t, n.x.s3.Addr())
		mine := *n.x
		mine.conf = strings.NewReplacer(u.Host, r.addr(), n.x.s3.Addr(), blobs.addr()).Replace(n.x.conf)
		s := mine.gateway(first)
		if first == nil {
			first = s
		}
		n.nodes = append(n.nodes, &node{server: s, relay: r, blobs: blobs, client: s3Client(n.t, s)})
	}
	if err := n.nodes[0].client.MakeBucket(context.Background(), "bkt", minio.MakeBucketOptions{}); err != nil {
		n.t.Fatal(err)
	}
}

// load runs the clients, and the faults beside them.
func (n *nemesis) load() {
	d := nemesisTime
	if s := os.Getenv("OGW_NEMESIS"); s != "" {
		var err error
		if d, err = time.ParseDuration(s); err != nil {
			n.t.Fatal(err)
		}
	}
	ctx, stop := context.WithTimeout(context.Background(), d)
	defer stop()
	var wg sync.WaitGroup
	for id := range nemesisClients {
		wg.Go(func() { n.client(ctx, id) })
	}
	n.faults(ctx)
	wg.Wait()
}

// faults breaks one gateway after another, each for a time after which the others have
// put it out, or not.
func (n *nemesis) faults(ctx context.Context) {
	rnd := rand.New(rand.NewPCG(n.seed, 0))
	counts := map[string]int{}
	for ctx.Err() == nil {
		x := n.nodes[rnd.IntN(len(n.nodes))]
		d := time.Duration(rnd.Int64N(int64(14 * time.Second)))
		kinds := []string{"kill", "stop", "stop long", "cut", "cut answers", "cut requests", "reset",
			"cut blobs", "cut blobs' answers", "cut blobs' requests", "reset blobs", "nothing"}
		kind := kinds[rnd.IntN(len(kinds))]
		if kind == "stop long" { // than until it is put out
			d += nemesisLong
		}
		counts[kind]++
		n.t.Logf("%v: %s of %s for %v", time.Since(n.begin).Round(time.Millisecond), kind, x.server.S3, d.Round(time.Millisecond))
		switch kind {
		case "kill":
			x.server.Kill()
		case "stop", "stop long":
			if err := x.server.Process.Signal(syscall.SIGSTOP); err != nil {
				n.t.Error(err)
			}
		case "cut":
			x.relay.cut(true, true)
		case "cut answers":
			x.relay.cut(false, true)
		case "cut requests":
			x.relay.cut(true, false)
		case "reset":
			x.relay.reset()
		case "cut blobs":
			x.blobs.cut(true, true)
		case "cut blobs' answers":
			x.blobs.cut(false, true)
		case "cut blobs' requests":
			x.blobs.cut(true, false)
		case "reset blobs":
			x.blobs.reset()
		}
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
		n.mend(x)
	}
	n.t.Logf("faults: %v", counts)
}

// mend brings a gateway back, which may have ended since it was put out.
func (n *nemesis) mend(x *node) {
	x.relay.cut(false, false)
	x.blobs.cut(false, false)
	if p := x.server.Process; p != nil {
		_ = p.Signal(syscall.SIGCONT)
		if !n.ended(p) {
			return
		}
		x.server.Process = nil
	}
	x.server.Start()
}

// ended waits until a gateway serves or has ended.
func (n *nemesis) ended(p *testenv.Process) bool {
	for begin := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		select {
		case <-p.Done():
			return true
		default:
		}
		for _, x := range n.nodes {
			if x.server.Process == p && ready(n.t, x.server) {
				return false
			}
		}
		if time.Since(begin) > time.Minute {
			n.t.Error("a gateway neither serves nor ends")
			return false
		}
	}
}

// heal has all gateways serve.
func (n *nemesis) heal() {
	for _, x := range n.nodes {
		n.mend(x)
	}
	for _, x := range n.nodes {
		waitFor(n.t, func() bool { return ready(n.t, x.server) })
	}
}

// register is one operation on one key; value "" is absence.
type register struct{ kind, key, value string }

// seen is what a client learned of an operation.
type seen struct {
	value   string
	refused bool // a condition did not hold
	unknown bool // it may have happened, or not, or later
}

// client makes operations until ctx ends, and then reads every key at every gateway.
func (n *nemesis) client(ctx context.Context, id int) {
	rnd := rand.New(rand.NewPCG(n.seed, uint64(id)+1))
	for i := 0; ctx.Err() == nil; i++ {
		turn := int(time.Since(n.begin) / nemesisTurn)
		op := register{kind: []string{"put", "get", "get", "get", "create", "delete"}[rnd.IntN(6)], key: fmt.Sprintf("k%d-%d", turn, rnd.IntN(nemesisKeys))}
		if op.kind == "put" || op.kind == "create" {
			op.value = fmt.Sprintf("%d-%d ", id, i)
			if rnd.IntN(4) == 0 {
				op.value += strings.Repeat("v", 40_000) // a blob
			}
		}
		n.run(op, n.nodes[rnd.IntN(len(n.nodes))])
		time.Sleep(time.Duration(rnd.Int64N(int64(60 * time.Millisecond))))
	}
}

// run makes an operation, and notes what came of it.
func (n *nemesis) run(op register, x *node) {
	ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
	defer cancel()
	call := time.Since(n.begin).Nanoseconds()
	out, err := op.do(ctx, x.client)
	done := time.Since(n.begin).Nanoseconds()
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case err == nil:
	case op.kind == "get":
		n.refused++
		return // it says nothing
	default:
		n.unknown++
		out, done = seen{unknown: true}, int64(1)<<62
	}
	n.history = append(n.history, porcupine.Operation{Input: op, Output: out, Call: call, Return: done})
}

func (op *register) do(ctx context.Context, c *minio.Client) (out seen, err error) {
	o := minio.PutObjectOptions{DisableMultipart: true}
	switch op.kind {
	case "get":
		var body *minio.Object
		if body, err = c.GetObject(ctx, "bkt", op.key, minio.GetObjectOptions{}); err == nil {
			var b []byte
			b, err = io.ReadAll(body)
			out.value = string(b)
			body.Close()
		}
		if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
			return seen{}, nil
		}
		return out, err
	case "delete":
		return out, c.RemoveObject(ctx, "bkt", op.key, minio.RemoveObjectOptions{})
	case "create":
		o.SetMatchETagExcept("*")
	}
	_, err = c.PutObject(ctx, "bkt", op.key, bytes.NewReader([]byte(op.value)), int64(len(op.value)), o)
	if op.kind == "create" && minio.ToErrorResponse(err).Code == minio.PreconditionFailed {
		return seen{refused: true}, nil
	}
	return out, err
}

// step is a register that each key is.
func step(state, input, output any) (bool, any) {
	value, op, out := state.(string), input.(register), output.(seen)
	switch op.kind {
	case "get":
		return out.value == value, value
	case "put":
		return true, op.value
	case "delete":
		return true, ""
	}
	switch { // create
	case out.refused:
		return value != "", value
	case value == "":
		return true, op.value
	}
	return out.unknown, value
}

// judge reads every key at every gateway, and has one order explain all answers.
func (n *nemesis) judge() {
	keys := map[string]bool{}
	for _, op := range n.history {
		keys[op.Input.(register).key] = true
	}
	for key := range keys {
		for _, x := range n.nodes {
			n.run(register{kind: "get", key: key}, x)
		}
	}
	n.t.Logf("%d operations on %d keys; %d without an outcome, %d reads refused", len(n.history), len(keys), n.unknown, n.refused)
	model := porcupine.Model{
		Init: func() any { return "" },
		Step: step,
		Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
			by := map[string][]porcupine.Operation{}
			for _, op := range history {
				k := op.Input.(register).key
				by[k] = append(by[k], op)
			}
			for _, p := range by {
				parts = append(parts, p)
			}
			return parts
		},
	}
	if res := porcupine.CheckOperationsTimeout(model, n.history, 5*time.Minute); res != porcupine.Ok {
		n.t.Errorf("no order explains the history: %v", res)
	}
	if out, err := n.nodes[0].server.TryOGW("check", "--data"); err != nil {
		n.t.Errorf("check: %v\n%s", err, out)
	}
}
