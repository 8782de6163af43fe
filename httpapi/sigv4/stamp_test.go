package sigv4

import (
	"net/http"
	"testing"
	"time"
)

// stamps are times right and wrong, as they are signed.
var stamps = []string{
	"20130524T000000Z", "20240229T235959Z", "20000229T000000Z", "00000101T000000Z", "99991231T235959Z",
	"20230229T000000Z", "19000229T000000Z", "20130431T000000Z", "20130432T000000Z", "20130500T000000Z", "20130024T000000Z", "20131324T000000Z",
	"20130524T240000Z", "20130524T006000Z", "20130524T000060Z", "2013052-T000000Z", "20130524T-10000Z", "20130524T0000 0Z",
	"20130524t000000Z", "20130524T000000z", "20130524T000000+", "20130524T00000Z", "20130524T0000000Z", "20130524T000000.5Z", "+0130524T000000Z", "",
}

// A time that is read the short way is the one that package time reads, and is written
// as it was.
func TestStamps(t *testing.T) {
	for _, v := range stamps {
		want, wantErr := time.Parse(timeFormat, v)
		if got, err := parseStamp(v); !got.Equal(want) || (err == nil) != (wantErr == nil) {
			t.Errorf("%q: %v %v, want %v %v", v, got, err, want, wantErr)
		}
		if got, ok := exactStamp(v); ok && (wantErr != nil || !got.Equal(want) || got.Format(timeFormat) != v) {
			t.Errorf("%q is read as %v", v, got)
		}
		if len(v) >= len(dateFormat) {
			day := v[:len(dateFormat)]
			if _, err := time.Parse(dateFormat, day); exactDay(day) != (err == nil) {
				t.Errorf("%q: %v", day, err)
			}
		}
	}
	for _, v := range stamps[:5] {
		if _, ok := exactStamp(v); !ok {
			t.Errorf("%q is read the long way", v)
		}
	}
}

func FuzzStamp(f *testing.F) {
	for _, v := range stamps {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v string) {
		got, ok := exactStamp(v)
		want, err := time.Parse(timeFormat, v)
		if ok && (err != nil || !got.Equal(want) || want.Format(timeFormat) != v) {
			t.Errorf("%q: %v, want %v %v", v, got, want, err)
		}
	})
}

// The values that are signed are those of the header, however its name is written.
func TestSignedHeaderNames(t *testing.T) {
	h := http.Header{"X-Amz-Date": {"a"}, "Range": {"b", "c"}, "X-Amz-Meta-9_!": {"d"}, "Bad name": {"e"}}
	for _, name := range []string{"x-amz-date", "range", "Range", "X-Amz-DATE", "x-amz-meta-9_!", "Bad name", "bad name", "other", "-", "", "ä"} {
		got, want := headerValues(h, name), h.Values(name)
		if len(got) != len(want) || len(got) > 0 && &got[0] != &want[0] {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// docHead is the reference request as it is read and checked over and over.
func docHead() func() error {
	v, r := New(at(docTime)), docGet()
	return func() error {
		s, err := v.Parse(r, nil, "")
		if err != nil {
			return err
		}
		return v.Verify(s, docSecret)
	}
}

// A header is read and checked with one allocation, the Signature, beside the sum of a
// body that is signed.
func TestVerifyAllocations(t *testing.T) {
	once := docHead()
	if err := once(); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { _ = once() }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkVerify: the signature in a header, of a key that is known.
func BenchmarkVerify(b *testing.B) {
	once := docHead()
	b.ReportAllocs()
	for b.Loop() {
		if err := once(); err != nil {
			b.Fatal(err)
		}
	}
}
