package rights

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
	"ogw/vfs/policy"
)

// policyStore is a reader of policies, which counts what is read of them.
type policyStore struct {
	cluster.Reader
	mu    sync.Mutex
	texts map[string][]byte
	reads int
	fails error
}

func (s *policyStore) Get(key []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	return s.texts[string(key)], s.fails
}

// set gives a bucket a policy, and returns its digest.
func (s *policyStore) set(ino record.Ino, bucket, text string) record.PolicyDigest {
	p := record.BucketPolicy{Bucket: bucket, Text: []byte(text)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.texts == nil {
		s.texts = map[string][]byte{}
	}
	s.texts[string(record.PolicyKey(ino))] = p.Encode()
	return p.Digest()
}

// teams is a policy of n statements, each with the same effect for the keys of a team.
func teams(bucket, effect string, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`{"Sid":"s%d","Effect":%q,"Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::%s/teams/%d/*"}`, i, effect, bucket, i)
	}
	return `{"Statement":[` + strings.Join(list, ",") + `]}`
}

func ofTeam(bucket string, i int) *policy.Request {
	return &policy.Request{Action: "s3:GetObject", Resource: fmt.Sprintf("arn:aws:s3:::%s/teams/%d/k", bucket, i)}
}

// ask decides by the policy of a bucket as a judge does.
func (c *policyCache) ask(s *policyStore, ino record.Ino, digest record.PolicyDigest, q *policy.Request) (policyVerdict, error) {
	u, err := c.get(s, ino, digest)
	if err != nil {
		return policyVerdict{}, err
	}
	return c.decide(s, ino, u, q)
}

// A text is read where a statement is asked for first, and not again.
func TestPolicyStatementsRead(t *testing.T) {
	var c policyCache
	s := &policyStore{}
	digest := s.set(1, "bkt", teams("bkt", "Allow", 100))
	for _, step := range []struct{ team, reads int }{{3, 1}, {3, 1}, {200, 1}, {70, 2}, {3, 2}, {70, 2}} {
		v, err := c.ask(s, 1, digest, ofTeam("bkt", step.team))
		if err != nil {
			t.Fatal(err)
		}
		want := policyVerdict{effect: policy.Allow, number: step.team + 1, sid: fmt.Sprintf("s%d", step.team)}
		if step.team >= 100 {
			want = policyVerdict{}
		}
		if v != want || s.reads != step.reads {
			t.Errorf("team %d: %+v after %d reads, want %+v after %d", step.team, v, s.reads, want, step.reads)
		}
	}
}

// Statements that cannot be read allow nothing: there is an error.
func TestPolicyStatementUnreadable(t *testing.T) {
	var c policyCache
	s := &policyStore{}
	digest := s.set(1, "bkt", teams("bkt", "Deny", 100))
	if _, err := c.ask(s, 1, digest, ofTeam("bkt", 1)); err != nil {
		t.Fatal(err)
	}
	s.fails = errors.New("no disk")
	if _, err := c.ask(s, 1, digest, ofTeam("bkt", 2)); !errors.Is(err, s.fails) {
		t.Error(err)
	}
	s.fails = nil
	s.set(1, "bkt", "{")
	if _, err := c.ask(s, 1, digest, ofTeam("bkt", 2)); !errors.Is(err, fserr.ErrCorrupt) {
		t.Error(err)
	}
	delete(s.texts, string(record.PolicyKey(1)))
	if _, err := c.ask(s, 1, digest, ofTeam("bkt", 2)); !errors.Is(err, fserr.ErrCorrupt) {
		t.Error(err)
	}
}

// Statements are never those of another text: what is stored counts as a whole.
func TestPolicyOfOtherText(t *testing.T) {
	for _, effect := range []string{"Allow", "Deny"} {
		var c policyCache
		s := &policyStore{}
		digest := s.set(1, "bkt", teams("bkt", "Allow", 100))
		if _, err := c.ask(s, 1, digest, ofTeam("bkt", 1)); err != nil {
			t.Fatal(err)
		}
		next := s.set(1, "bkt", strings.Replace(teams("bkt", effect, 101), `"Sid":"s2"`, `"Sid":"xx"`, 1))
		for _, d := range []record.PolicyDigest{digest, next} {
			v, err := c.ask(s, 1, d, ofTeam("bkt", 2))
			if err != nil || v.sid != "xx" || v.effect == policy.Deny != (effect == "Deny") {
				t.Errorf("%s: %+v, %v", effect, v, err)
			}
		}
	}
}

// What is kept stays within its bound, and is told right.
func TestPolicyCacheBounded(t *testing.T) {
	var c policyCache
	text := []byte(teams("bkt", "Allow", 150))
	little, err := CompilePolicy(&record.BucketPolicy{Bucket: "bkt", Text: text})
	if err != nil {
		t.Fatal(err)
	}
	all, err := little.With(text, []int{7, 8, 9})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 * policyCacheBytes / little.cost() {
		p, more := *little, BucketPolicy{Partial: *all}
		binary.BigEndian.PutUint64(p.digest[:], uint64(i))
		more.digest = p.digest
		c.put(nil, &p)
		if i%3 == 0 {
			c.put(&p, &more)
			c.put(&p, &more) // of one that is not there any more
		}
		if c.bytes > policyCacheBytes || c.entries[p.digest] == nil {
			t.Fatalf("%d bytes, at most %d; the last one: %v", c.bytes, policyCacheBytes, c.entries[p.digest])
		}
	}
	bytes := 0
	for digest, p := range c.entries {
		if p.digest != digest {
			t.Error("a policy under another digest")
		}
		bytes += p.cost()
	}
	if bytes != c.bytes || bytes < policyCacheBytes-2*(all.Bytes()+policyEntryBytes) {
		t.Errorf("%d policies of %d bytes, told %d, at most %d", len(c.entries), bytes, c.bytes, policyCacheBytes)
	}
}

// Who asks at once gets what one after the other would, and in the end nothing is read.
func TestPolicyStatementsAtOnce(t *testing.T) {
	var c policyCache
	s := &policyStore{}
	digest := s.set(1, "bkt", teams("bkt", "Allow", 100))
	ask := func(team int) {
		v, err := c.ask(s, 1, digest, ofTeam("bkt", team))
		if err != nil || v.number != team+1 {
			t.Errorf("team %d: %+v, %v", team, v, err)
		}
	}
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range 100 {
				ask((worker*25 + i) % 100)
			}
		})
	}
	all.Wait()
	for team := range 100 {
		ask(team)
	}
	before := s.reads
	for team := range 100 {
		ask(team)
	}
	if s.reads != before {
		t.Errorf("%d reads", s.reads-before)
	}
}
