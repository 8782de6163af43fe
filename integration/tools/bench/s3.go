package main

import (
	"crypto/md5"
	"crypto/rand"
	"fmt"
)

// keysPerClient is how many keys a writer goes over: some PUTs make files,
// most replace them.
const keysPerClient = 64

// s3Bench is one run of the S3 rows.
type s3Bench struct {
	*env
	s      *server
	sign   signed
	bare   *bareServer
	engine *bareEngine
}

// s3Suite measures objects over S3, all durable, with signatures that were
// computed ahead and payloads that are not signed, as SDKs do over HTTPS.
func s3Suite(e *env) error {
	s, err := startServer(e)
	if err != nil {
		return err
	}
	defer s.stop()
	bare, err := startBare(e.dir)
	if err != nil {
		return err
	}
	defer bare.stop()
	engine, err := e.bareEngine()
	if err != nil {
		return err
	}
	defer engine.close()
	b := &s3Bench{env: e, s: s, bare: bare, engine: engine, sign: signed{addr: s.addr, creds: s.client.creds}}
	if err := s.client.createBucket(e.ctx, s.url("/bench")); err != nil {
		return err
	}
	for _, size := range []int{smallBytes, 64 * kib, mib, largeBytes} {
		if err := b.size(size); err != nil {
			return err
		}
	}
	return b.small()
}

// once sends one request.
func (b *s3Bench) once(method, path string, body []byte, want int64) error {
	r, err := b.sign.request(method, path, body, want)
	if err != nil {
		return err
	}
	c, err := dialRaw(b.ctx, b.s.addr)
	if err != nil {
		return err
	}
	defer c.close()
	return c.do(&r, nil)
}

// verified gets an object once and compares all of it.
func (b *s3Bench) verified(path string, want []byte) error {
	r, err := b.sign.request("GET", path, nil, int64(len(want)))
	if err != nil {
		return err
	}
	c, err := dialRaw(b.ctx, b.s.addr)
	if err != nil {
		return err
	}
	defer c.close()
	return c.do(&r, compare(want))
}

// size measures PUT and GET of one size at all numbers of clients.
func (b *s3Bench) size(size int) error {
	body := make([]byte, size)
	rand.Read(body)
	name := sizeName(size)
	if err := b.writeFile("bare-"+name, body); err != nil {
		return err
	}
	for _, clients := range []int{1, 4, 16} {
		if err := b.put(body, clients, b.sign, ""); err != nil {
			return err
		}
	}
	if size == mib {
		hashed := b.sign
		hashed.hash = true
		if err := b.put(body, 4, hashed, ", SHA-256 signed"); err != nil {
			return err
		}
	}
	path := "/bench/get-" + name
	if err := b.once("PUT", path, body, 0); err != nil {
		return err
	}
	if err := b.verified(path, body); err != nil {
		return err
	}
	clients := []int{1, 4, 16}
	if size == largeBytes {
		clients = []int{1, 4, 8, 16}
	}
	for _, n := range clients {
		if err := b.get(path, size, n); err != nil {
			return err
		}
	}
	return nil
}

func rowName(op string, size, clients int) string {
	unit := "clients"
	if clients == 1 {
		unit = "client"
	}
	return fmt.Sprintf("S3 %s %s, %d %s", op, sizeName(size), clients, unit)
}

// put measures PUT beside what bounds a durable write of that size.
func (b *s3Bench) put(body []byte, clients int, sign signed, variant string) error {
	size := len(body)
	var failed error
	load, done, err := b.httpLoad("S3", b.s.target(), clients, func(client int) []rawRequest {
		list := make([]rawRequest, keysPerClient)
		for i := range list {
			r, err := sign.request("PUT", fmt.Sprintf("/bench/%s/%d/%d", sizeName(size), client, i), body, 0)
			if err != nil {
				failed = err
			}
			list[i] = r
		}
		return list
	})
	if err != nil {
		return err
	}
	defer done()
	if failed != nil {
		return failed
	}
	p := pair{name: rowName("PUT", size, clients) + variant, figure: load, bytes: size}
	hash := hashing(b.env, "MD5", size, clients, md5.New)
	switch size {
	case smallBytes:
		txn := b.engine.transactions(clients, 100)
		if clients == 16 {
			p.limits = []gauge{fixed("10k/s", 10000), part(0.5, txn)}
			p.target = 1
		} else {
			p.limits = []gauge{txn}
		}
	case 64 * kib:
		p.limits = []gauge{b.segmentWrites(size, clients), hash}
		if clients == 16 {
			p.target = 0.5
		}
	case mib:
		p.limits = []gauge{b.segmentWrites(size, clients), hash}
	default:
		p.limits = []gauge{b.directFiles(size, clients), hash}
		if clients <= 4 {
			p.target = 0.7
		}
	}
	return b.measure(p)
}

// get measures GET of one object beside a file server with sendfile.
func (b *s3Bench) get(path string, size, clients int) error {
	r, err := b.sign.request("GET", path, nil, int64(size))
	if err != nil {
		return err
	}
	load, done, err := b.httpLoad("S3", b.s.target(), clients, func(int) []rawRequest { return []rawRequest{r} })
	if err != nil {
		return err
	}
	defer done()
	limit, doneBare, err := b.httpLoad("net/http file server", b.bare.target(), clients, func(int) []rawRequest {
		return []rawRequest{bareGet(b.bare.addr, "/files/bare-"+sizeName(size), int64(size))}
	})
	if err != nil {
		return err
	}
	defer doneBare()
	p := pair{name: rowName("GET", size, clients), figure: load, limits: []gauge{limit}, bytes: size}
	if size >= largeBytes {
		p.target = 0.7
	}
	return b.measure(p)
}

// small measures reads of 4 KiB with many clients, signed and from an object
// that is open to all: the difference is what signatures cost.
func (b *s3Bench) small() error {
	const clients = 64
	if err := b.s.client.createBucket(b.ctx, b.s.url("/open")); err != nil {
		return err
	}
	body := make([]byte, smallBytes)
	for _, path := range []string{"/bench/small", "/open/small"} {
		if err := b.once("PUT", path, body, 0); err != nil {
			return err
		}
	}
	if err := b.s.client.putACL(b.ctx, b.s.url("/open/small"), "public-read"); err != nil {
		return err
	}
	for _, method := range []string{"GET", "HEAD"} {
		r, err := b.sign.request(method, "/bench/small", nil, smallBytes)
		if err != nil {
			return err
		}
		open := anonymous(b.s.addr, method, "/open/small", smallBytes)
		bareRequest := anonymous(b.bare.addr, method, "/small", smallBytes)
		limit, done, err := b.httpLoad("net/http handler", b.bare.target(), clients, func(int) []rawRequest { return []rawRequest{bareRequest} })
		if err != nil {
			return err
		}
		defer done()
		for _, v := range []struct {
			name    string
			request rawRequest
			target  float64
		}{{"", r, 0.6}, {", anonymous", open, 0}} {
			load, done, err := b.httpLoad("S3", b.s.target(), clients, func(int) []rawRequest { return []rawRequest{v.request} })
			if err != nil {
				return err
			}
			defer done()
			p := pair{name: rowName(method, smallBytes, clients) + v.name, figure: load, limits: []gauge{limit}, target: v.target}
			if err := b.measure(p); err != nil {
				return err
			}
		}
	}
	return nil
}
