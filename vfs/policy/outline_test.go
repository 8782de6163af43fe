package policy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestActionsFit(t *testing.T) {
	if n, room := len(allActions), 64*len(actionSet{}); n > room {
		t.Fatalf("%d actions, room for %d", n, room)
	}
}

// Resources that begin with one another, over an alphabet that makes that usual.
func TestOutline(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	word := func(most int) string {
		b := make([]byte, rnd.IntN(most+1))
		for i := range b {
			b[i] = "ab/"[rnd.IntN(3)]
		}
		return string(b)
	}
	for range 300 {
		var list []string
		for range 1 + rnd.IntN(20) {
			list = append(list, fmt.Sprintf(`{"Effect":%q,"Principal":"*",%q:["s3:%s","s3:Put*"],"%sResource":["arn:aws:s3:::bkt/%s","arn:aws:s3:::bkt/%s*"]}`,
				[]string{"Allow", "Deny"}[rnd.IntN(2)], []string{"Action", "NotAction"}[rnd.IntN(2)], []string{"GetObject", "getobject", "DeleteObject"}[rnd.IntN(3)],
				[]string{"", "", "", "Not"}[rnd.IntN(4)], word(4), word(4)))
		}
		text := `{"Statement":[` + strings.Join(list, ",") + `]}`
		p, d, doc, err := parse([]byte(text), Options{Bucket: "bkt"})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		partial := newPartial(p, d, doc, 0)
		for range 50 {
			r := &Request{Action: []string{"s3:GetObject", "s3:PutObject", "s3:getObject", "s3:Other"}[rnd.IntN(4)], Resource: "arn:aws:s3:::bkt/" + word(6)}
			got, by := d.Decide(r)
			if want, first := inOrder(d, r); got != want || by != first {
				t.Fatalf("%+v: %v by %d; of all in order, %v by %d\n%s", r, got, by, want, first, text)
			}
			partial = decidePartly(t, d, partial, []byte(text), r)
		}
	}
}

// manyStatements is a document of which one statement is about the key.
func manyStatements() string {
	var list []string
	for i := range 100 {
		list = append(list, fmt.Sprintf(`{"Effect":"Allow","Principal":"*","Action":["s3:GetObject","s3:PutObject"],"Resource":"arn:aws:s3:::bkt/teams/%d/*","Condition":{"IpAddress":{"aws:SourceIp":"192.0.2.0/24"}}}`, i))
	}
	return `{"Statement":[` + strings.Join(append(list, `{"Effect":"Deny","Principal":"*","Action":"s3:*","Resource":"arn:aws:s3:::bkt/*","Condition":{"Bool":{"aws:SecureTransport":"true"}}}`), ",") + `]}`
}

func BenchmarkStatements(b *testing.B) {
	d, err := Parse([]byte(manyStatements()), Options{Bucket: "bkt"})
	if err != nil {
		b.Fatal(err)
	}
	r := &Request{Action: "s3:GetObject", Resource: "arn:aws:s3:::bkt/k", Values: keyMap{"aws:securetransport": {"false"}}}
	b.Run("indexed", func(b *testing.B) {
		for b.Loop() {
			d.Decide(r)
		}
	})
	b.Run("in order", func(b *testing.B) {
		for b.Loop() {
			inOrder(d, r)
		}
	})
}

// unknown are the keys of a request that has none; what it returns beside false is what
// it was asked for before.
type unknown struct{}

func (unknown) Value(string) ([]string, bool) { return []string{"before"}, false }

// TestUnknownKeys: what comes with false is no value.
func TestUnknownKeys(t *testing.T) {
	for condition, want := range map[string]Effect{
		`"Null":{"aws:Referer":"true"}`:                  Allow,
		`"Null":{"aws:Referer":"false"}`:                 None,
		`"StringEquals":{"aws:Referer":"before"}`:        None,
		`"StringEqualsIfExists":{"aws:Referer":"other"}`: Allow,
		`"StringNotEquals":{"aws:Referer":"before"}`:     Allow,
	} {
		text := doc(`{"Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::bkt/*","Condition":{` + condition + `}}`)
		d, err := Parse([]byte(text), Options{Bucket: "bkt"})
		if err != nil {
			t.Fatal(err)
		}
		if e, _ := d.Decide(&Request{Action: "s3:GetObject", Resource: "arn:aws:s3:::bkt/k", Principal: alice, Values: unknown{}}); e != want {
			t.Errorf("%s: %v, want %v", condition, e, want)
		}
	}
}
