package engines

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
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
	nemesisTime    = 40 * time.Second
	nemesisClients = 6
	// A key is used for nemesisTurn, so that its history stays short.
	nemesisKeys = 4
	nemesisTurn = 5 * time.Second
	// nemesisLong is longer than others wait before they put a gateway out, which stopLong is for.
	nemesisLong = 15 * time.Second
	stopLong    = "stop long"
	// nemesisAway is how long one gateway stands still in runs that are more than twice as long.
	nemesisAway = 20 * time.Minute
	// opTimeout is when a client gives an operation up.
	opTimeout = 4 * time.Second
)

// TestNemesis has gateways beside one another killed, stopped, and cut off from the
// metadata and from the blobs, and these servers killed and stopped, while clients write and read a few keys through all of them,
// over S3, NFS and mounts. What was acknowledged is there, and one order explains all answers. For
// longer than by default, the clocks of all but one are off.
func TestNemesis(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) *metaServer{"etcd": startEtcdCluster, "PostgreSQL": startPostgresMeta} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testNemesis(t, startShared(t, start))
		})
	}
}

func testNemesis(t *testing.T, x *shared) {
	x.manyGateways()
	n := &nemesis{t: t, x: x, begin: time.Now(), seed: uint64(time.Now().UnixNano())}
	d, clocks := nemesisTime, []string{"", "", ""}
	if s := os.Getenv("OGW_NEMESIS"); s != "" {
		var err error
		if d, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
		clocks = []string{"", "3600", "-3600 20"}
	}
	t.Logf("seed %d", n.seed)
	n.start(clocks)
	n.begin = time.Now()
	n.load(d)
	n.heal()
	n.judge()
}

type nemesis struct {
	t     *testing.T
	x     *shared
	begin time.Time
	seed  uint64
	nodes []*node

	bucket  []byte // its handle
	mu      sync.Mutex
	history []porcupine.Operation
	unknown int // operations whose outcome no client knows
	refused int
}

// node is a gateway and its ways to the metadata and to the blobs.
type node struct {
	server *testenv.Server
	relays []*relay // one to each server of the metadata
	blobs  *relay   // nil: it has its own
	peers  *relay   // from the other gateways
	client *minio.Client
	mount  string // "" where there is no FUSE
}

// ways are all relays of a node.
func (x *node) ways() []*relay {
	all := append(slices.Clone(x.relays), x.peers)
	if x.blobs != nil {
		all = append(all, x.blobs)
	}
	return all
}

// start starts gateways with clocks, each with ways of its own to what they share.
func (n *nemesis) start(clocks []string) {
	n.t.Helper()
	var first *testenv.Server
	var gateway, objects string // programs whose clocks are off
	if strings.Join(clocks, "") != "" {
		s := newSkews(n.t)
		gateway = s.build(".", "ogw/cmd/ogw")
		if n.x.s3 != nil {
			objects = s.build("../setup/versitygw", "github.com/versity/versitygw/cmd/versitygw")
		}
	}
	for _, clock := range clocks {
		env, x := clockVariable+"="+clock, &node{}
		var names []string
		if s3 := n.x.s3; s3 != nil {
			if clock != "" { // S3 refuses what is signed by another clock
				s3 = s3.Twin(objects, env)
			}
			x.blobs = newRelay(n.t, s3.Addr())
			names = []string{n.x.s3.Addr(), x.blobs.addr()}
		}
		for _, host := range n.x.meta.hosts {
			r := newRelay(n.t, host)
			x.relays, names = append(x.relays, r), append(names, host, r.addr())
		}
		listen := testenv.FreeAddr(n.t)
		x.peers = newRelay(n.t, listen)
		mine := *n.x
		mine.conf = strings.NewReplacer(names...).Replace(n.x.conf) + fmt.Sprintf("peer_listen = %q\npeer_address = %q\n", listen, x.peers.addr())
		s := mine.prepare(first)
		if clock != "" {
			s.Binary, s.Env = gateway, []string{env}
		}
		s.Start()
		x.server = s
		if x.client = s3Client(n.t, s); clock != "" { // who signs by another clock is refused
			x.client = anonymous(n.t, s)
		}
		if n.nodes = append(n.nodes, x); first == nil {
			first = s
			n.makeBucket(x)
		}
		if _, err := os.Stat("/dev/fuse"); err == nil && os.Geteuid() == 0 {
			x.mount = s.Mount("-o", "survive")
		}
	}
}

// everybodys is a policy of the bucket that lets everybody read and write.
const everybodys = `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow",
	"Principal": "*", "Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], "Resource": "arn:aws:s3:::bkt/*"}]}`

// makeBucket makes the bucket, for all.
func (n *nemesis) makeBucket(x *node) {
	n.t.Helper()
	err := x.client.MakeBucket(context.Background(), "bkt", minio.MakeBucketOptions{})
	if err == nil {
		err = x.client.SetBucketPolicy(context.Background(), "bkt", everybodys)
	}
	if err == nil {
		n.bucket, err = nfsHandle(x.server, "bkt")
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

// load runs the clients for a time, and the faults beside them.
func (n *nemesis) load(d time.Duration) {
	ctx, stop := context.WithTimeout(context.Background(), d)
	defer stop()
	var wg sync.WaitGroup
	for id := range nemesisClients {
		wg.Go(func() { n.client(ctx, id) })
	}
	n.faults(ctx, d)
	wg.Wait()
}

// fault is something that goes wrong for a time. What is not undone by end, mend does.
type fault struct {
	kind       string
	begin, end func()
}

// faultsOf returns what can go wrong with a gateway, its ways, and what it uses.
func (n *nemesis) faultsOf(x *node) []fault {
	stop := func() {
		// One that was put out may have ended since it was looked at; mend says why.
		if err := x.server.Process.Signal(syscall.SIGSTOP); err != nil && !errors.Is(err, syscall.ESRCH) {
			n.t.Error(err)
		}
	}
	list := append([]fault{{kind: "kill", begin: x.server.Kill}, {kind: "stop", begin: stop}, {kind: stopLong, begin: stop},
		{kind: "nothing", begin: func() {}}}, cuts("", x.relays...)...)
	list = append(list, cuts(" of peers", x.peers)...)
	if x.blobs != nil {
		list = append(list, cuts(" of blobs", x.blobs)...)
	}
	for name, v := range map[string]victim{"metadata": {n.x.meta.kill, n.x.meta.start, n.x.meta.signal}, "blobs": n.x.blobs.victim} {
		list = append(list,
			fault{"kill " + name, v.kill, v.start},
			fault{"stop " + name, func() { v.signal(syscall.SIGSTOP) }, func() { v.signal(syscall.SIGCONT) }})
	}
	// In an order, so that a seed means the same faults again.
	slices.SortFunc(list, func(a, b fault) int { return cmp.Compare(a.kind, b.kind) })
	return list
}

// cuts are what can go wrong with ways.
func cuts(name string, ways ...*relay) (list []fault) {
	for kind, do := range map[string]func(r *relay){
		"cut":          func(r *relay) { r.cut(true, true) },
		"cut answers":  func(r *relay) { r.cut(false, true) },
		"cut requests": func(r *relay) { r.cut(true, false) },
		"reset":        (*relay).reset,
	} {
		list = append(list, fault{kind: kind + name, begin: func() {
			for _, r := range ways {
				do(r)
			}
		}})
	}
	return list
}

// faults breaks one gateway after another, or what it uses, each for a time after which the
// others have put it out, or not.
func (n *nemesis) faults(ctx context.Context, span time.Duration) {
	rnd := rand.New(rand.NewPCG(n.seed, 0))
	counts := map[string]int{}
	nodes := n.nodes
	back := time.Time{} // when the last one is
	if span > 2*nemesisAway {
		away := nodes[len(nodes)-1]
		n.t.Logf("%s stands still for %v", away.server.S3, nemesisAway)
		if err := away.server.Process.Signal(syscall.SIGSTOP); err != nil {
			n.t.Error(err)
		}
		nodes, back = nodes[:len(nodes)-1], time.Now().Add(nemesisAway)
	}
	for ctx.Err() == nil {
		if len(nodes) < len(n.nodes) && time.Now().After(back) {
			nodes = n.nodes
			n.mend(nodes[len(nodes)-1])
		}
		x := nodes[rnd.IntN(len(nodes))]
		kinds := n.faultsOf(x)
		f, d := kinds[rnd.IntN(len(kinds))], time.Duration(rnd.Int64N(int64(14*time.Second)))
		if f.kind == stopLong {
			d += nemesisLong
		}
		counts[f.kind]++
		n.t.Logf("%v: %s of %s for %v", time.Since(n.begin).Round(time.Millisecond), f.kind, x.server.S3, d.Round(time.Millisecond))
		f.begin()
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
		if f.end != nil {
			f.end()
		}
		n.mend(x)
	}
	n.t.Logf("faults: %v", counts)
}

// mend brings a gateway back, which may have ended since it was put out.
func (n *nemesis) mend(x *node) {
	for _, r := range x.ways() {
		r.cut(false, false)
	}
	if p := x.server.Process; p != nil {
		_ = p.Signal(syscall.SIGCONT)
		if !n.ended(p) {
			return
		}
		// Its last words: of a log that is full of refused requests no more may be left.
		if log := x.server.Log(); !strings.Contains(log, "another one has put it out") {
			n.t.Errorf("%s ended, though nobody put it out:\n%s", x.server.S3, log)
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
type register struct {
	kind, key, value string
	at               *node
}

// seen is what a client learned of an operation.
type seen struct {
	value   string
	refused bool // a condition did not hold
	unknown bool // it may have happened, or not, or later
}

// ways are how a client reaches the gateways, beside S3.
type ways struct {
	nfs  *nfsWays
	fuse *fuseWays
}

func (n *nemesis) newWays(id int) (*ways, error) {
	fuse, err := newFuseWays(n, id)
	return &ways{newNFSWays(n), fuse}, err
}

func (w *ways) close() {
	w.nfs.close()
	w.fuse.close()
}

// client makes operations until ctx ends.
func (n *nemesis) client(ctx context.Context, id int) {
	rnd := rand.New(rand.NewPCG(n.seed, uint64(id)+1))
	w, err := n.newWays(id)
	if err != nil {
		n.t.Error(err)
		return
	}
	defer w.close()
	kinds := []string{"put", "get", "get", "create", "delete", "nfs write", "nfs write", "nfs read", "nfs read", "nfs remove"}
	if n.nodes[0].mount != "" {
		kinds = append(kinds, "fuse put", "fuse read", "fuse read", "fuse read", "fuse create", "fuse remove", "fuse write", "fuse write", "fuse append", "fuse append")
	}
	for i := 0; ctx.Err() == nil; i++ {
		turn := int(time.Since(n.begin) / nemesisTurn)
		op := register{kind: kinds[rnd.IntN(len(kinds))], key: fmt.Sprintf("k%d-%d", turn, rnd.IntN(nemesisKeys)), at: n.nodes[rnd.IntN(len(n.nodes))]}
		switch op.kind {
		case "put", "create", "nfs write", "fuse put", "fuse create", "fuse write", "fuse append":
			op.value = fmt.Sprintf("%d-%d ", id, i)
			if op.kind != "fuse append" && rnd.IntN(4) == 0 {
				op.value += strings.Repeat("v", 40_000) // a blob
			}
		}
		n.run(op, w)
		time.Sleep(time.Duration(rnd.Int64N(int64(60 * time.Millisecond))))
	}
}

// run makes an operation, and notes what came of it.
func (n *nemesis) run(op register, w *ways) {
	ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
	defer cancel()
	call := time.Since(n.begin).Nanoseconds()
	var out seen
	var err error
	switch door, _, _ := strings.Cut(op.kind, " "); door {
	case "nfs":
		out, err = w.nfs.do(&op)
	case "fuse":
		out, err = w.fuse.do(&op)
	default:
		out, err = op.do(ctx, op.at.client)
	}
	done := time.Since(n.begin).Nanoseconds()
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case err == nil:
	case errors.Is(err, errSaysNothing) || op.isRead():
		n.refused++
		return
	default:
		n.unknown++
		out, done = seen{unknown: true}, math.MaxInt64
	}
	n.history = append(n.history, porcupine.Operation{Input: op, Output: out, Call: call, Return: done})
}

// isRead reports whether an operation changes nothing.
func (op *register) isRead() bool { return op.kind == "get" || strings.HasSuffix(op.kind, " read") }

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
	case "get", "nfs read", "fuse read", "fuse cached read":
		return out.value == value, value
	case "put", "fuse put":
		return true, op.value
	case "delete":
		return true, ""
	case "nfs remove", "fuse remove":
		return out.unknown || out.refused == (value == ""), ""
	case "nfs write", "fuse write", "fuse append":
		if value == "" { // of a file that has no name any more, or no write at all
			return out.unknown, value
		}
		if op.kind == "fuse append" {
			return true, value + op.value
		}
		return true, op.value + value[min(len(value), len(op.value)):]
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
	w, err := n.newWays(nemesisClients)
	if err != nil {
		n.t.Fatal(err)
	}
	defer w.close()
	for key := range keys {
		for _, x := range n.nodes {
			for _, kind := range []string{"get", "nfs read", "fuse read", "fuse cached read"} {
				n.run(register{kind: kind, key: key, at: x}, w)
			}
		}
	}
	early, kinds := n.dropEarly(), map[string]int{}
	for _, op := range n.history {
		kinds[op.Input.(register).kind]++
	}
	n.t.Logf("%d operations on %d keys; %d without an outcome, %d refused, %d reads of what was not stored yet: %v", len(n.history), len(keys), n.unknown, n.refused, early, kinds)
	model := porcupine.Model{Init: func() any { return "" }, Step: step}
	for key, part := range n.byKey() {
		res := porcupine.Unknown
		for _, list := range [][]porcupine.Operation{withoutUnseen(part), part} {
			if res = porcupine.CheckOperationsTimeout(model, list, 5*time.Minute); res == porcupine.Ok {
				break
			}
		}
		if res != porcupine.Ok {
			n.t.Errorf("%s: no order explains the history: %v\n%s", key, res, n.tell(part))
		}
	}
	if out, err := n.nodes[0].server.TryOGW("check", "--data"); err != nil {
		n.t.Errorf("check: %v\n%s", err, out)
	}
}

// withoutUnseen returns a history without operations whose outcome nobody knows and whose
// value nobody read. An order that explains it explains all, with these at its end, and is
// found soon, where there are many.
func withoutUnseen(history []porcupine.Operation) (list []porcupine.Operation) {
	var read []string
	for _, op := range history {
		if in := op.Input.(register); in.isRead() {
			read = append(read, op.Output.(seen).value)
		}
	}
	for _, op := range history {
		in := op.Input.(register)
		was := in.value != "" && slices.ContainsFunc(read, func(v string) bool { return strings.Contains(v, mark(in.value)) })
		if !op.Output.(seen).unknown || was {
			list = append(list, op)
		}
	}
	return list
}

// byKey returns the history of each key.
func (n *nemesis) byKey() map[string][]porcupine.Operation {
	by := map[string][]porcupine.Operation{}
	for _, op := range n.history {
		k := op.Input.(register).key
		by[k] = append(by[k], op)
	}
	return by
}

// tell returns a history in lines, by the time of the calls.
func (n *nemesis) tell(history []porcupine.Operation) string {
	slices.SortFunc(history, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var text strings.Builder
	for _, op := range history {
		in, out := op.Input.(register), op.Output.(seen)
		end := "          "
		if !out.unknown {
			end = fmt.Sprintf("%9.3fs", time.Duration(op.Return).Seconds())
		}
		fmt.Fprintf(&text, "%9.3fs %s %d %-11s", time.Duration(op.Call).Seconds(), end, slices.Index(n.nodes, in.at), in.kind)
		for _, v := range []string{in.value, out.value} {
			if filled := strings.TrimRight(v, "v"); v != "" && filled != v {
				v = fmt.Sprintf("%s(%d bytes)", filled, len(v))
			}
			fmt.Fprintf(&text, " %q", v)
		}
		fmt.Fprintln(&text, map[bool]string{true: " refused"}[out.refused])
	}
	return text.String()
}
