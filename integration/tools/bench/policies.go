package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"golang.org/x/sync/errgroup"
)

// What policies of buckets cost a GET of 4 KiB. Two servers, of which one has as many
// policies of the largest size as buckets, take turns as two binaries do (ab.go); or two
// buckets of one server do.

const (
	// policyBuckets is how many buckets each server has besides.
	policyBuckets = 10_000
	// policyBytes is what the text of a policy may have.
	policyBytes = 20 << 10
	// policyPart is what policies that others have may cost, and policyOwn
	// the bucket's own.
	policyPart, policyOwn = 0.03, 0.10
)

// policiesSuite prints the ratios that policies leave of a rate.
func policiesSuite(e *env) error {
	b := &abBench{abOptions: abOptions{starts: e.starts, pairs: e.pairs}, rowsWanted: e.rowsWanted}
	for i := range b.sides {
		own := *e
		own.dir = filepath.Join(e.dir, fmt.Sprintf("policies-%d", i))
		if err := os.Mkdir(own.dir, 0o700); err != nil {
			return err
		}
		b.sides[i] = &own
	}
	var owners [2]aws.Credentials
	fmt.Printf("%-52s %-32s %-32s\n", "GET 4KiB, 16 clients, with/without (bound): median (95 % interval)", "rate", "CPU per operation")
	err := eachStart(b, func(own *env, first bool) (*s3Bench, func(), error) {
		side := slices.Index(b.sides[:], own)
		return policiesStart(own, first, side == 1, &owners[side])
	}, func(of [2]*s3Bench) error { return b.policies(of[0], of[1]) })
	if err != nil {
		return err
	}
	b.judge(0)
	for _, r := range b.results {
		e.rows = append(e.rows, row{Name: r.Name, Value: r.Rate.Median, Unit: "of 1", Limit: 1, LimitName: "the same without",
			Target: 1 - r.Bound, Note: fmt.Sprintf("rate %+v, CPU %+v", r.Rate, r.CPU)})
	}
	if err := b.finish(); !errors.Is(err, errWorse) { // which the rows say
		return err
	}
	return nil
}

// policiesStart starts a server whose buckets have policies, or not. Their owner sends
// the requests: administrators are under no policy.
func policiesStart(e *env, first, policies bool, owner *aws.Credentials) (*s3Bench, func(), error) {
	s, err := abServer(e)
	if err != nil {
		return nil, nil, err
	}
	if first {
		*owner, err = s.addUser("owner")
	}
	s.client.creds = *owner
	b := &s3Bench{env: e, s: s, sign: signed{addr: s.addr, creds: *owner}}
	if err == nil && first {
		err = b.policyFill(policies)
	}
	if err == nil {
		err = eachBucket(policyBuckets, func(i int) error { return b.once("GET", policyObject(i), nil, smallBytes) })
	}
	if err == nil {
		err = quiet(s.cmd.Process.Pid)
	}
	if err != nil {
		s.stop()
		return nil, nil, err
	}
	return b, s.stop, nil
}

// eachBucket calls fn for the first n of the buckets, for some at a time.
func eachBucket(n int, fn func(i int) error) error {
	var g errgroup.Group
	g.SetLimit(abClients)
	for i := range n {
		g.Go(func() error { return fn(i) })
	}
	return g.Wait()
}

func policyBucket(i int) string { return fmt.Sprintf("/bucket-%05d", i) }

func policyObject(i int) string { return policyBucket(i) + "/k" }

// policyFill makes the buckets, and those that the rows compare: without a policy, with
// a short one, and with one of the largest size.
func (b *s3Bench) policyFill(policies bool) error {
	body := make([]byte, smallBytes)
	rand.Read(body)
	bucket := func(path, policy string) error {
		if err := b.s.client.createBucket(b.ctx, b.s.url(path)); err != nil {
			return err
		}
		if policy != "" {
			if _, err := b.s.client.send(b.ctx, "PUT", b.s.url(path+"?policy="), []byte(policy)); err != nil {
				return err
			}
		}
		return b.once("PUT", path+"/k", body, 0)
	}
	of := func(string) string { return "" }
	if policies {
		of = func(path string) string { return longPolicy(path[1:]) }
		if err := bucket("/short", shortPolicy("short")); err != nil {
			return err
		}
		if err := bucket("/long", longPolicy("long")); err != nil {
			return err
		}
	}
	if err := bucket("/none", ""); err != nil {
		return err
	}
	return eachBucket(policyBuckets, func(i int) error { return bucket(policyBucket(i), of(policyBucket(i))) })
}

// shortPolicy is the usual one: nothing without TLS, for whom it names.
func shortPolicy(bucket string) string {
	return strings.ReplaceAll(`{"Version":"2012-10-17","Statement":[{"Sid":"tls","Effect":"Deny","Principal":"*","Action":"s3:*","Resource":["arn:aws:s3:::BKT","arn:aws:s3:::BKT/*"],`+
		`"Condition":{"Bool":{"aws:SecureTransport":"false"},"NotIpAddress":{"aws:SourceIp":"127.0.0.0/8"}}},`+
		`{"Effect":"Allow","Principal":{"AWS":"*"},"Action":["s3:GetObject","s3:PutObject"],"Resource":"arn:aws:s3:::BKT/*","Condition":{"StringLike":{"aws:UserAgent":"x*"}}}]}`, "BKT", bucket)
}

// longPolicy is as long as one may be: statements for other keys, and one for all.
func longPolicy(bucket string) string {
	const last = `{"Effect":"Deny","Principal":"*","Action":"s3:*","Resource":"arn:aws:s3:::BKT/*","Condition":{"Bool":{"aws:SecureTransport":"true"}}}`
	list, size := []string(nil), 200+len(last)
	for i := 0; ; i++ {
		s := fmt.Sprintf(`{"Effect":"Allow","Principal":"*","Action":["s3:GetObject","s3:PutObject"],"Resource":"arn:aws:s3:::%s/teams/%d/*","Condition":{"IpAddress":{"aws:SourceIp":"192.0.2.0/24"}}}`, bucket, i)
		if size += len(s) + 1; size > policyBytes {
			break
		}
		list = append(list, s)
	}
	return `{"Version":"2012-10-17","Statement":[` + strings.Join(append(list, strings.ReplaceAll(last, "BKT", bucket)), ",") + `]}`
}

// policies measures the pairs of one start: a server without policies, and one that is
// full of them.
func (b *abBench) policies(without, with *s3Bench) error {
	var closers []func()
	defer func() {
		for _, done := range closers {
			done()
		}
	}()
	load := func(s *s3Bench, requests func() ([]rawRequest, error)) (abRow, error) {
		var failed error
		g, done, err := s.httpLoad("S3", s.s.target(), abClients, func(int) (list []rawRequest) {
			if list, failed = requests(); failed != nil {
				return nil
			}
			return list
		})
		if err == nil {
			err = failed
			closers = append(closers, done)
		}
		return abRow{gauge: g}, err
	}
	one := func(s *s3Bench, path string) (abRow, error) {
		r, err := s.sign.request("GET", path, nil, smallBytes)
		if err != nil {
			return abRow{}, err
		}
		return load(s, func() ([]rawRequest, error) { return []rawRequest{r}, nil })
	}
	all := func(s *s3Bench) (abRow, error) {
		return load(s, func() (list []rawRequest, err error) {
			for _, i := range mathrand.Perm(policyBuckets)[:policyBuckets/abClients] {
				r, err := s.sign.request("GET", policyObject(i), nil, smallBytes)
				if err != nil {
					return nil, err
				}
				list = append(list, r)
			}
			return list, nil
		})
	}
	for _, r := range []struct {
		name       string
		bound      float64
		base, head func() (abRow, error)
	}{
		{"10,000 policies of 20 KiB, of other buckets", policyPart, func() (abRow, error) { return one(without, "/none/k") }, func() (abRow, error) { return one(with, "/none/k") }},
		{"a short policy", policyOwn, func() (abRow, error) { return one(with, "/none/k") }, func() (abRow, error) { return one(with, "/short/k") }},
		{"a policy of 20 KiB", policyOwn, func() (abRow, error) { return one(with, "/none/k") }, func() (abRow, error) { return one(with, "/long/k") }},
		{"each of 10,000 buckets, with a policy of 20 KiB", policyOwn, func() (abRow, error) { return all(without) }, func() (abRow, error) { return all(with) }},
	} {
		base, err := r.base()
		if err != nil {
			return err
		}
		head, err := r.head()
		if err != nil {
			return err
		}
		base.name, base.bound = fmt.Sprintf("%s (%.0f %%)", r.name, 100*r.bound), r.bound
		if err := b.rows([2][]abRow{{base}, {head}}); err != nil {
			return err
		}
	}
	return nil
}
