package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// The examples of the S3 and IAM user guides ("Examples of Amazon S3 bucket
// policies", "Amazon S3 condition key examples", "Bucket policy examples using
// condition keys", "IAM policy elements: variables and tags"), written anew.

const (
	objects = "arn:aws:s3:::bkt/*"
	get     = "s3:GetObject"
	put     = "s3:PutObject"
	list    = "s3:ListBucket"
)

// doc is a document of some statements.
func doc(statements ...string) string {
	return `{"Version":"2012-10-17","Statement":[` + strings.Join(statements, ",") + `]}`
}

var (
	alice = Principal{ID: "AIDAALICE", Account: "AIDAALICE"}
	bob   = Principal{ID: "AIDABOB", Account: "AIDABOB"}
	// helper is a user in alice's account.
	helper = Principal{ID: "AIDAHELPER", Account: "AIDAALICE"}
	nobody = Principal{}
)

type ask struct {
	who    Principal
	action string
	key    string // "" is the bucket
	keys   keyMap
	want   Effect
}

var examples = []struct {
	name string
	text string
	asks []ask
}{
	{"everybody reads", doc(`{"Sid":"PublicRead","Effect":"Allow","Principal":"*","Action":["s3:GetObject","s3:GetObjectVersion"],"Resource":["arn:aws:s3:::bkt/*"]}`), []ask{
		{nobody, get, "k", nil, Allow}, {alice, get, "a/b", nil, Allow}, {nobody, put, "k", nil, None}, {nobody, list, "", nil, None},
	}},
	{"some users put and must give the owner full control", doc(
		`{"Effect":"Allow","Principal":{"AWS":["AIDABOB","AIDAALICE"]},"Action":["s3:PutObject","s3:PutObjectAcl"],"Resource":"arn:aws:s3:::bkt/*",
		"Condition":{"StringEquals":{"s3:x-amz-acl":["bucket-owner-full-control"]}}}`), []ask{
		{bob, put, "k", keyMap{"s3:x-amz-acl": {"bucket-owner-full-control"}}, Allow}, {bob, put, "k", keyMap{"s3:x-amz-acl": {"private"}}, None},
		{bob, put, "k", nil, None}, {nobody, put, "k", keyMap{"s3:x-amz-acl": {"bucket-owner-full-control"}}, None},
		{helper, put, "k", keyMap{"s3:x-amz-acl": {"bucket-owner-full-control"}}, AllowAccount},
	}},
	{"only by TLS", doc(`{"Effect":"Allow","Principal":"*","Action":"s3:*","Resource":"arn:aws:s3:::bkt/*"}`,
		`{"Sid":"tls","Effect":"Deny","Principal":"*","Action":"s3:*","Resource":["arn:aws:s3:::bkt","arn:aws:s3:::bkt/*"],"Condition":{"Bool":{"aws:SecureTransport":"false"}}}`), []ask{
		{alice, get, "k", keyMap{"aws:securetransport": {"false"}}, Deny}, {alice, get, "k", keyMap{"aws:securetransport": {"true"}}, Allow},
	}},
	{"addresses, but for some", doc(`{"Effect":"Allow","Principal":"*","Action":"s3:*","Resource":"arn:aws:s3:::bkt/*",
		"Condition":{"IpAddress":{"aws:SourceIp":["192.0.2.0/24","2001:DB8:1234:5678::/64"]},"NotIpAddress":{"aws:SourceIp":["192.0.2.128/30","2001:DB8:1234:5678:ABCD::/80"]}}}`), []ask{
		{nobody, get, "k", keyMap{"aws:sourceip": {"192.0.2.1"}}, Allow}, {nobody, get, "k", keyMap{"aws:sourceip": {"192.0.2.129"}}, None},
		{nobody, get, "k", keyMap{"aws:sourceip": {"2001:db8:1234:5678::9"}}, Allow}, {nobody, get, "k", keyMap{"aws:sourceip": {"2001:db8:1234:5678:abcd::9"}}, None},
		{nobody, get, "k", keyMap{"aws:sourceip": {"::ffff:192.0.2.1"}}, Allow}, {nobody, get, "k", nil, None},
	}},
	{"pages that link to it", doc(`{"Effect":"Allow","Principal":"*","Action":["s3:GetObject"],"Resource":"arn:aws:s3:::bkt/*",
		"Condition":{"StringLike":{"aws:Referer":["http://www.example.com/*","http://example.com/*"]}}}`), []ask{
		{nobody, get, "k", keyMap{"aws:referer": {"http://example.com/page"}}, Allow}, {nobody, get, "k", keyMap{"aws:referer": {"http://example.org/"}}, None},
	}},
	{"a folder for each user", doc(
		`{"Effect":"Allow","Principal":{"AWS":"*"},"Action":"s3:ListBucket","Resource":"arn:aws:s3:::bkt","Condition":{"StringLike":{"s3:prefix":["home/${aws:username}/*"]}}}`,
		`{"Effect":"Allow","Principal":{"AWS":"*"},"Action":["s3:GetObject","s3:PutObject"],"Resource":"arn:aws:s3:::bkt/home/${aws:username}/*"}`), []ask{
		{alice, get, "home/alice/x", keyMap{"aws:username": {"alice"}}, Allow}, {alice, get, "home/bob/x", keyMap{"aws:username": {"alice"}}, None},
		{alice, get, "home/x/x", keyMap{"aws:username": {"*"}}, None}, {nobody, get, "home//x", nil, None},
		{alice, list, "", keyMap{"aws:username": {"alice"}, "s3:prefix": {"home/alice/"}}, Allow}, {alice, list, "", keyMap{"aws:username": {"alice"}}, None},
	}},
	{"lists of one folder", doc(
		`{"Effect":"Allow","Principal":{"AWS":"AIDABOB"},"Action":"s3:ListBucket","Resource":"arn:aws:s3:::bkt","Condition":{"StringEquals":{"s3:prefix":"projects"}}}`,
		`{"Effect":"Deny","Principal":{"AWS":"AIDABOB"},"Action":"s3:ListBucket","Resource":"arn:aws:s3:::bkt","Condition":{"StringNotEquals":{"s3:prefix":"projects"}}}`), []ask{
		{bob, list, "", keyMap{"s3:prefix": {"projects"}}, Allow}, {bob, list, "", keyMap{"s3:prefix": {"other"}}, Deny}, {bob, list, "", nil, Deny},
	}},
	{"pages of ten keys", doc(`{"Effect":"Allow","Principal":{"AWS":"AIDABOB"},"Action":"s3:ListBucket","Resource":"arn:aws:s3:::bkt","Condition":{"NumericLessThanEquals":{"s3:max-keys":"10"}}}`), []ask{
		{bob, list, "", keyMap{"s3:max-keys": {"9"}}, Allow}, {bob, list, "", keyMap{"s3:max-keys": {"10"}}, Allow}, {bob, list, "", keyMap{"s3:max-keys": {"11"}}, None},
	}},
	{"objects with a tag", doc(`{"Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::bkt/*","Condition":{"StringEquals":{"s3:ExistingObjectTag/environment":"production"}}}`), []ask{
		{nobody, get, "k", keyMap{"s3:existingobjecttag/environment": {"production"}}, Allow}, {nobody, get, "k", keyMap{"s3:existingobjecttag/environment": {"test"}}, None},
	}},
	{"all tags among those allowed", doc(`{"Effect":"Allow","Principal":{"AWS":"AIDABOB"},"Action":"s3:PutObjectTagging","Resource":"arn:aws:s3:::bkt/*",
		"Condition":{"ForAllValues:StringLike":{"s3:RequestObjectTagKeys":["Owner","CreationDate"]}}}`), []ask{
		{bob, "s3:PutObjectTagging", "k", keyMap{"s3:requestobjecttagkeys": {"Owner", "CreationDate"}}, Allow},
		{bob, "s3:PutObjectTagging", "k", keyMap{"s3:requestobjecttagkeys": {"Owner", "Secret"}}, None}, {bob, "s3:PutObjectTagging", "k", nil, Allow},
	}},
	{"copies from one folder", doc(`{"Effect":"Deny","Principal":{"AWS":"AIDABOB"},"Action":"s3:PutObject","Resource":"arn:aws:s3:::bkt/*","Condition":{"StringNotLike":{"s3:x-amz-copy-source":"bkt/public/*"}}}`), []ask{
		{bob, put, "k", keyMap{"s3:x-amz-copy-source": {"bkt/secret/x"}}, Deny}, {bob, put, "k", keyMap{"s3:x-amz-copy-source": {"bkt/public/x"}}, None},
	}},
	{"nobody else", doc(`{"Effect":"Deny","NotPrincipal":{"AWS":["AIDAALICE"]},"Action":"s3:*","Resource":["arn:aws:s3:::bkt","arn:aws:s3:::bkt/*"]}`), []ask{
		{alice, get, "k", nil, None}, {bob, get, "k", nil, Deny}, {nobody, list, "", nil, Deny},
	}},
	{"all but deleting", doc(`{"Effect":"Allow","Principal":{"AWS":"AIDABOB"},"NotAction":["s3:DeleteObject*","s3:DeleteBucket"],"Resource":["arn:aws:s3:::bkt","arn:aws:s3:::bkt/*"]}`), []ask{
		{bob, put, "k", nil, Allow}, {bob, "s3:DeleteObject", "k", nil, None}, {bob, "s3:DeleteObjectVersion", "k", nil, None},
	}},
	{"a deny wins, whatever stands after it", doc(`{"Sid":"no","Effect":"Deny","Principal":"*","Action":"s3:Get*","Resource":"arn:aws:s3:::bkt/secret/*"}`,
		`{"Effect":"Allow","Principal":"*","Action":"s3:*","Resource":"arn:aws:s3:::bkt/*"}`), []ask{
		{alice, get, "secret/x", nil, Deny}, {alice, get, "x", nil, Allow}, {alice, put, "secret/x", nil, Allow},
	}},
	{"until a day", doc(`{"Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::bkt/*",
		"Condition":{"DateGreaterThan":{"aws:CurrentTime":"2020-01-01T00:00:00Z"},"DateLessThan":{"aws:CurrentTime":"2020-06-30T23:59:59Z"}}}`), []ask{
		{nobody, get, "k", keyMap{"aws:currenttime": {"2020-03-01T00:00:00Z"}}, Allow}, {nobody, get, "k", keyMap{"aws:currenttime": {"2020-07-01T00:00:00Z"}}, None},
	}},
	{"without a second factor", doc(`{"Effect":"Deny","Principal":"*","Action":"s3:*","Resource":"arn:aws:s3:::bkt/tax/*","Condition":{"Null":{"aws:MultiFactorAuthAge":true}}}`), []ask{
		{alice, get, "tax/1", nil, Deny}, {alice, get, "tax/1", keyMap{"aws:multifactorauthage": {"10"}}, None},
	}},
	{"old language: no variables", `{"Version":"2008-10-17","Statement":{"Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::bkt/${aws:username}"}}`, []ask{
		{alice, get, "alice", keyMap{"aws:username": {"alice"}}, None}, {alice, get, "${aws:username}", nil, Allow},
	}},
}

func TestExamples(t *testing.T) {
	for _, e := range examples {
		t.Run(e.name, func(t *testing.T) {
			d, err := Parse([]byte(e.text), Options{Bucket: "bkt"})
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range e.asks {
				resource := bucketARN + "bkt"
				if a.key != "" {
					resource += "/" + a.key
				}
				r := &Request{Action: a.action, Resource: resource, Principal: a.who, Values: a.keys}
				got, by := d.Decide(r)
				if got != a.want || (by < 0) != (got == None) {
					t.Errorf("%+v: %v by statement %d", a, got, by)
				}
				if second := naiveDecide([]byte(e.text), r); second != a.want {
					t.Errorf("%+v: the second evaluator says %v", a, second)
				}
			}
		})
	}
}

// base is a valid statement with one member replaced or left out.
func base(replace ...string) string {
	members := map[string]string{"Effect": `"Allow"`, "Principal": `"*"`, "Action": `"s3:GetObject"`, "Resource": `"` + objects + `"`}
	order := []string{"Effect", "Principal", "Action", "Resource"}
	for i := 0; i < len(replace); i += 2 {
		if _, ok := members[replace[i]]; !ok {
			order = append(order, replace[i])
		}
		members[replace[i]] = replace[i+1]
	}
	var list []string
	for _, name := range order {
		if members[name] != "" {
			list = append(list, fmt.Sprintf("%q:%s", name, members[name]))
		}
	}
	return "{" + strings.Join(list, ",") + "}"
}

func TestMalformed(t *testing.T) {
	const syntax = "Invalid policy syntax."
	const notJSON = "Policies must be valid JSON and the first byte must be '{'"
	for _, c := range []struct{ text, want string }{
		{"", notJSON}, {"[]", notJSON}, {`"x"`, notJSON}, {"{", notJSON}, {"{} {}", notJSON}, {"{\"Id\":\"\xff\"}", notJSON}, {`{"a":1,}`, notJSON},
		{strings.Repeat(`{"Statement":`, 20) + "1" + strings.Repeat("}", 20), notJSON},
		{strings.Repeat("[", 10_000), notJSON},
		{`{"Statement":[]}`, "Could not parse the policy: Statement is empty!"},
		{`{}`, "Missing required field Statement"},
		{`{"Version":"2012-10-17"}`, "Missing required field Statement"},
		{`{"Version":"2013-10-17","Statement":[` + base() + `]}`, "The policy must contain a valid version string"},
		{`{"Version":2012,"Statement":[` + base() + `]}`, "The policy must contain a valid version string"},
		{`{"version":"2012-10-17","Statement":[` + base() + `]}`, "Unknown field version"},
		{`{"Statement":[` + base() + `],"Statement":[` + base() + `]}`, "Policy document should not contain duplicate keys."},
		{`{"Statement":[` + base() + `],"Id":1}`, syntax},
		{`{"Statement":["x"]}`, syntax},
		{doc(base("Effect", "")), "Missing required field Effect"},
		{doc(base("Effect", `"allow"`)), "Invalid effect: allow"},
		{doc(base("Principal", "")), "Missing required field Principal"},
		{doc(base("Action", "")), "Missing required field Action"},
		{doc(base("Resource", "")), "Missing required field Resource"},
		{doc(base("NotAction", `"s3:PutObject"`)), syntax},
		{doc(base("NotResource", `"`+objects+`"`)), syntax},
		{doc(base("NotPrincipal", `{"AWS":"x"}`)), syntax},
		{doc(base("Princpal", `"*"`)), "Unknown field Princpal"},
		{doc(base("Sid", `1`)), syntax},
		{doc(base("Sid", `"a"`), base("Sid", `"a"`)), "Statement IDs (SID) in a single policy must be unique."},
		{doc(base("Principal", `"AIDABOB"`)), "Invalid principal in policy"},
		{doc(base("Principal", `[]`)), "Invalid principal in policy"},
		{doc(base("Principal", `{}`)), "Invalid principal in policy"},
		{doc(base("Principal", `{"AWS":[]}`)), "Invalid principal in policy"},
		{doc(base("Principal", `{"AWS":1}`)), "Invalid principal in policy"},
		{doc(base("Principal", `{"Aws":"*"}`)), "Invalid principal in policy"},
		{doc(base("Principal", "", "NotPrincipal", `"*"`)), "Invalid principal in policy"},
		{doc(base("Principal", "", "NotPrincipal", `{"AWS":"*"}`)), "Invalid principal in policy"},
		{doc(base("Action", `"GetObject"`)), "Policy has invalid action"},
		{doc(base("Action", `"s3:GetObjekt"`)), "Policy has invalid action"},
		{doc(base("Action", `"ec2:*"`)), "Policy has invalid action"},
		{doc(base("Action", `[]`)), "Policy has invalid action"},
		{doc(base("Action", `{"s3":"GetObject"}`)), "Policy has invalid action"},
		{doc(base("Action", `"s3:ListBucket"`)), "Action does not apply to any resource(s) in statement"},
		{doc(base("Resource", `"arn:aws:s3:::bkt"`)), "Action does not apply to any resource(s) in statement"},
		{doc(base("Action", `"s3:ListAllMyBuckets"`)), "Action does not apply to any resource(s) in statement"},
		{doc(base("Resource", `"arn:aws:s3:::other/*"`)), "Policy has invalid resource"},
		{doc(base("Resource", `"arn:aws:s3:::bktother/*"`)), "Policy has invalid resource"},
		{doc(base("Resource", `"*"`)), "Policy has invalid resource"},
		{doc(base("Resource", `"arn:aws:s3:::*"`)), "Policy has invalid resource"},
		{doc(base("Resource", `"bkt/*"`)), "Policy has invalid resource"},
		{doc(base("Resource", `"arn:aws:s3:::bkt/${aws:username"`)), "Policy has invalid resource"},
		{doc(base("Resource", `"arn:aws:s3:::bkt/${}"`)), "Policy has invalid resource"},
		{doc(base("Resource", `"arn:aws:s3:::bkt/${a, b}"`)), "Policy has invalid resource"},
		{doc(base("Condition", `"x"`)), syntax},
		{doc(base("Condition", `{"StringEquals":"x"}`)), syntax},
		{doc(base("Condition", `{"StringEquals":{"aws:Referer":[]}}`)), syntax},
		{doc(base("Condition", `{"StringEquals":{"aws:Referer":null}}`)), syntax},
		{doc(base("Condition", `{"StringEquals":{"aws:Referer":{"a":"b"}}}`)), syntax},
		{doc(base("Condition", `{"StringSmells":{"aws:Referer":"x"}}`)), "Invalid Condition type : StringSmells"},
		{doc(base("Condition", `{"stringEquals":{"aws:Referer":"x"}}`)), "Invalid Condition type : stringEquals"},
		{doc(base("Condition", `{"NullIfExists":{"aws:Referer":"true"}}`)), "Invalid Condition type : NullIfExists"},
		{doc(base("Condition", `{"StringEquals":{"aws:Refer":"x"}}`)), "Policy has an invalid condition key"},
		{doc(base("Condition", `{"StringEquals":{"s3:ExistingObjectTag/":"x"}}`)), "Policy has an invalid condition key"},
		{doc(base("Condition", `{"StringEquals":{"s3:prefix":"x"}}`)), "Conditions do not apply to combination of actions and resources in statement"},
		{doc(base("Condition", `{"NumericEquals":{"s3:signatureAge":"ten"}}`)), syntax},
		{doc(base("Condition", `{"NumericEquals":{"s3:signatureAge":"NaN"}}`)), syntax},
		{doc(base("Condition", `{"DateEquals":{"aws:CurrentTime":"soon"}}`)), syntax},
		{doc(base("Condition", `{"Bool":{"aws:SecureTransport":"maybe"}}`)), syntax},
		{doc(base("Condition", `{"IpAddress":{"aws:SourceIp":"192.0.2.0/33"}}`)), syntax},
		{doc(base("Condition", `{"BinaryEquals":{"aws:Referer":"%"}}`)), syntax},
		{doc(base("Condition", `{"ArnLike":{"aws:PrincipalArn":"x"}}`)), syntax},
		{`{"Id":"` + strings.Repeat("x", MaxBucketBytes) + `"}`, "Normalized policy document exceeds the maximum allowed size of 20480 bytes."},
	} {
		d, err := Parse([]byte(c.text), Options{Bucket: "bkt"})
		var e *Error
		if !errors.As(err, &e) || e.Message != c.want {
			t.Errorf("%.200s:\n%v, %v, want %s", c.text, d, err, c.want)
		}
	}
	for _, text := range []string{doc(base()), doc(base("Action", `["s3:*","*"]`)), doc(base("Condition", `{"Bool":{"aws:SecureTransport":true}}`))} {
		if _, err := Parse([]byte(text), Options{Bucket: "bkt"}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestKinds(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		text string
		ok   bool
	}{
		{Identity, doc(`{"Effect":"Allow","Action":["s3:*","iam:GetUser"],"Resource":["*","arn:aws:s3:::a/*"]}`), true},
		{Identity, doc(`{"Effect":"Allow","Action":"s3:*","Resource":"bucket"}`), false},
		{Identity, doc(`{"Effect":"Allow","Principal":"*","Action":"s3:*","Resource":"*"}`), false},
		{Trust, doc(`{"Effect":"Allow","Principal":{"AWS":"AIDABOB"},"Action":"sts:AssumeRole"}`), true},
		{Trust, doc(`{"Effect":"Allow","Principal":{"AWS":"AIDABOB"},"Action":"sts:AssumeRole","Resource":"*"}`), false},
		{Trust, doc(`{"Effect":"Allow","Action":"sts:AssumeRole"}`), false},
	} {
		if _, err := Parse([]byte(c.text), Options{Kind: c.kind}); (err == nil) != c.ok {
			t.Errorf("%v %s: %v", c.kind, c.text, err)
		}
	}
}

func TestPublic(t *testing.T) {
	for _, c := range []struct {
		text string
		want bool
	}{
		{doc(base()), true},
		{doc(base("Effect", `"Deny"`)), false},
		{doc(base("Principal", `{"AWS":"AIDABOB"}`)), false},
		{doc(base("Principal", "", "NotPrincipal", `{"AWS":"AIDABOB"}`)), true},
		{doc(base("Condition", `{"StringEquals":{"aws:SourceVpc":"vpc-91237329"}}`)), false},
		{doc(base("Condition", `{"StringLike":{"aws:SourceVpc":"vpc-*"}}`)), true},
		{doc(base("Condition", `{"StringNotEquals":{"aws:SourceVpc":"vpc-91237329"}}`)), true},
		{doc(base("Condition", `{"StringEqualsIfExists":{"aws:SourceVpc":"vpc-91237329"}}`)), true},
		{doc(base("Condition", `{"ForAllValues:StringEquals":{"aws:SourceVpc":"vpc-91237329"}}`)), true},
		{doc(base("Condition", `{"StringEquals":{"aws:Referer":"http://example.com/"}}`)), true},
		{doc(base("Condition", `{"StringEquals":{"aws:username":"${aws:userid}"}}`)), true},
		{doc(base("Condition", `{"IpAddress":{"aws:SourceIp":["192.0.2.0/24","10.0.0.0/8"]}}`)), false},
		{doc(base("Condition", `{"IpAddress":{"aws:SourceIp":["192.0.2.0/24","0.0.0.0/1"]}}`)), true},
		{doc(base("Condition", `{"IpAddress":{"aws:SourceIp":"::/0"}}`)), true},
		{doc(base("Condition", `{"ArnLike":{"aws:PrincipalArn":"arn:aws:iam::000000000001:*"}}`)), false},
		{doc(base("Condition", `{"ArnLike":{"aws:PrincipalArn":"arn:aws:iam::*:user/x"}}`)), true},
		{doc(base("Principal", `{"AWS":"AIDABOB"}`), base()), true},
	} {
		d, err := Parse([]byte(c.text), Options{Bucket: "bkt"})
		if err != nil || d.Public() != c.want {
			t.Errorf("%s: public is not %v, %v", c.text, c.want, err)
		}
	}
}

func TestRewrite(t *testing.T) {
	const given = `{"Statement" : { "Principal":{"AWS":["arn:1","*", "arn:2"],"CanonicalUser": "x\u0031"},"Resource":"arn:1" }}`
	got, err := Rewrite([]byte(given), func(name string) (string, error) {
		if name == "arn:2" {
			return name, nil
		}
		return "ID-" + name + `"`, nil
	})
	want := `{"Statement" : { "Principal":{"AWS":["ID-arn:1\"","*", "arn:2"],"CanonicalUser": "ID-x1\""},"Resource":"arn:1" }}`
	if err != nil || string(got) != want {
		t.Errorf("%s %v", got, err)
	}
	failed := errors.New("unknown")
	if _, err := Rewrite([]byte(given), func(string) (string, error) { return "", failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
}

// largeDocument has as many statements as fit into a bucket's policy.
func largeDocument(bucket string) string {
	var list []string
	for n := 0; ; n++ {
		s := fmt.Sprintf(`{"Effect":"Allow","Principal":{"AWS":"AIDAUSER%09d"},"Action":["s3:GetObject","s3:PutObject"],"Resource":"arn:aws:s3:::%s/teams/%d/*","Condition":{"IpAddress":{"aws:SourceIp":"192.0.2.0/24"}}}`, n, bucket, n)
		if len(doc(append(list, s)...)) > MaxBucketBytes {
			return doc(list...)
		}
		list = append(list, s)
	}
}

func BenchmarkDecide(b *testing.B) {
	keys := keyMap{"aws:sourceip": {"192.0.2.1"}, "aws:username": {"alice"}, "aws:securetransport": {"true"}}
	for _, c := range []struct{ name, text string }{
		{"one statement", doc(base())},
		{"tls only", examples[2].text},
		{"home folders", examples[5].text},
		{"20 KiB", largeDocument("bkt")},
	} {
		b.Run(c.name, func(b *testing.B) {
			d, err := Parse([]byte(c.text), Options{Bucket: "bkt"})
			if err != nil {
				b.Fatal(err)
			}
			r := &Request{Action: get, Resource: bucketARN + "bkt/home/alice/a/file.txt", Principal: alice, Values: keys}
			b.ReportAllocs()
			for b.Loop() {
				d.Decide(r)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	text := []byte(largeDocument("bkt"))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(text, Options{Bucket: "bkt"}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestDecideAllocatesNothing holds for what requests ask most.
func TestDecideAllocatesNothing(t *testing.T) {
	for _, text := range []string{examples[2].text, examples[5].text, largeDocument("bkt")} {
		d, err := Parse([]byte(text), Options{Bucket: "bkt"})
		if err != nil {
			t.Fatal(err)
		}
		keys := keyMap{"aws:sourceip": {"192.0.2.1"}, "aws:username": {"alice"}, "aws:securetransport": {"true"}}
		r := &Request{Action: get, Resource: bucketARN + "bkt/home/alice/a", Principal: alice, Values: keys}
		if n := testing.AllocsPerRun(100, func() { d.Decide(r) }); n != 0 {
			t.Errorf("%.200s: %v allocations", text, n)
		}
	}
}
