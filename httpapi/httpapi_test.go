package httpapi

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestParseRange(t *testing.T) {
	for _, c := range []struct {
		header   string
		size     int64
		off, len int64
		partial  bool
		bad      bool
	}{
		{"", 10, 0, 10, false, false},
		{"bytes=0-", 10, 0, 10, true, false},
		{"bytes=0-0", 10, 0, 1, true, false},
		{"bytes=3-5", 10, 3, 3, true, false},
		{"bytes=3-99", 10, 3, 7, true, false},
		{"bytes=0-99999999999999999999", 10, 0, 10, true, false},
		{"bytes=-4", 10, 6, 4, true, false},
		{"bytes=-40", 10, 0, 10, true, false},
		{"bytes=-0", 10, 0, 0, false, true},
		{"bytes=10-", 10, 0, 0, false, true},
		{"bytes=99999999999999999999-", 10, 0, 0, false, true},
		{"bytes=0-", 0, 0, 0, false, true},
		{"bytes=-1", 0, 0, 0, false, true},
		{"bytes=5-3", 10, 0, 10, false, false},
		{"bytes=a-3", 10, 0, 10, false, false},
		{"bytes=+1-3", 10, 0, 10, false, false},
		{"bytes=1-2,4-5", 10, 0, 10, false, false},
		{"bytes=-", 10, 0, 10, false, false},
		{"bytes=5", 10, 0, 10, false, false},
		{"lines=1-2", 10, 0, 10, false, false},
	} {
		r, partial, err := ParseRange(c.header, c.size)
		if errors.Is(err, ErrBadRange) != c.bad || !c.bad && (r != Range{c.off, c.len} || partial != c.partial) {
			t.Errorf("%q of %d: got %+v %v %v", c.header, c.size, r, partial, err)
		}
	}
	if got := (Range{3, 3}).ContentRange(10); got != "bytes 3-5/10" {
		t.Error(got)
	}
}

func FuzzParseRange(f *testing.F) {
	f.Add("bytes=0-5", int64(10))
	f.Add("bytes=-5", int64(0))
	f.Fuzz(func(t *testing.T, h string, size int64) {
		if size < 0 {
			return
		}
		r, partial, err := ParseRange(h, size)
		if err != nil {
			return
		}
		if r.Off < 0 || r.Len < 0 || r.Off+r.Len > size || partial && r.Len == 0 {
			t.Fatalf("%q of %d: %+v", h, size, r)
		}
	})
}

func TestConditions(t *testing.T) {
	mod := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	at := func(d time.Duration) string { return mod.Add(d).Format(http.TimeFormat) }
	for _, c := range []struct {
		name, value string
		read, write Outcome
	}{
		{"If-Match", `"e"`, Proceed, Proceed},
		{"If-Match", `e`, Proceed, Proceed},
		{"If-Match", `*`, Proceed, Proceed},
		{"If-Match", `"x", "e"`, Proceed, Proceed},
		{"If-Match", `W/"e"`, PreconditionFailed, PreconditionFailed},
		{"If-Match", `"x"`, PreconditionFailed, PreconditionFailed},
		{"If-Match", `,`, PreconditionFailed, PreconditionFailed},
		{"If-Match", ``, Proceed, Proceed},
		{"If-None-Match", `,`, Proceed, Proceed},
		{"If-None-Match", `"e"`, NotModified, PreconditionFailed},
		{"If-None-Match", `W/"e"`, NotModified, PreconditionFailed},
		{"If-None-Match", `*`, NotModified, PreconditionFailed},
		{"If-None-Match", `"x"`, Proceed, Proceed},
		{"If-Modified-Since", at(0), NotModified, Proceed},
		{"If-Modified-Since", at(-time.Second), Proceed, Proceed},
		{"If-Modified-Since", "nonsense", Proceed, Proceed},
		{"If-Unmodified-Since", at(0), Proceed, Proceed},
		{"If-Unmodified-Since", at(-time.Second), PreconditionFailed, PreconditionFailed},
	} {
		for _, prefix := range []string{"", "X-Amz-Copy-Source-"} {
			h := http.Header{}
			h.Set(prefix+c.name, c.value)
			cond := ParseConditions(h, prefix)
			if got := cond.CheckRead("e", mod); got != c.read {
				t.Errorf("%s: %s: read %v", c.name, c.value, got)
			}
			if got := cond.CheckWrite(true, "e", mod); got != c.write {
				t.Errorf("%s: %s: write %v", c.name, c.value, got)
			}
		}
	}
	// A matching If-Match overrides If-Unmodified-Since; a differing
	// If-None-Match overrides If-Modified-Since.
	h := http.Header{"If-Match": {`"e"`}, "If-Unmodified-Since": {at(-time.Hour)}}
	if ParseConditions(h, "").CheckRead("e", mod) != Proceed {
		t.Error("If-Match does not override If-Unmodified-Since")
	}
	h = http.Header{"If-None-Match": {`"x"`}, "If-Modified-Since": {at(time.Hour)}}
	if ParseConditions(h, "").CheckRead("e", mod) != Proceed {
		t.Error("If-None-Match does not override If-Modified-Since")
	}
	none := http.Header{"If-Match": {"*"}}
	if ParseConditions(none, "").CheckWrite(false, "", time.Time{}) != PreconditionFailed {
		t.Error("If-Match: * holds for nothing")
	}
	none = http.Header{"If-None-Match": {"*"}}
	if ParseConditions(none, "").CheckWrite(false, "", time.Time{}) != Proceed {
		t.Error("If-None-Match: * refuses to create")
	}
}

func TestIfRange(t *testing.T) {
	mod := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for v, want := range map[string]bool{
		"": true, `"e"`: true, `"x"`: false, `W/"e"`: false,
		mod.Format(http.TimeFormat): true, mod.Add(time.Second).Format(http.TimeFormat): false, "junk": false,
	} {
		h := http.Header{}
		if v != "" {
			h.Set("If-Range", v)
		}
		if got := IfRangeHolds(h, "e", mod); got != want {
			t.Errorf("%q: %v", v, got)
		}
	}
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// A client in botocore's manner: headers with Expect and Content-Length: 0,
// then it waits for 100 before it reads the answer.
func TestExpectWithEmptyBody(t *testing.T) {
	srv := httptest.NewServer(Frame(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "got %d", n)
	}), FrameConfig{Door: "t", Logger: quiet()}))
	defer srv.Close()
	c, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	br := bufio.NewReader(c)
	for _, n := range []int{0, 5, 0} {
		fmt.Fprintf(c, "PUT /x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", n)
		line, err := br.ReadString('\n')
		if err != nil || !strings.HasPrefix(line, "HTTP/1.1 100") {
			t.Fatalf("length %d: %q %v", n, line, err)
		}
		if line, _ = br.ReadString('\n'); line != "\r\n" {
			t.Fatalf("after 100: %q", line)
		}
		fmt.Fprint(c, strings.Repeat("b", n))
		res, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(res.Body)
		if string(b) != fmt.Sprintf("got %d", n) {
			t.Fatalf("%q", b)
		}
	}
}

func TestFramePanicAndLog(t *testing.T) {
	var log bytes.Buffer
	var recs []*Record
	h := Frame(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		Note(r.Context(), "Op", "me", nil)
		if r.URL.Path == "/panic" {
			panic("boom")
		}
		fmt.Fprint(w, RequestID(r.Context()))
	}), FrameConfig{Door: "t", Logger: slog.New(slog.NewTextHandler(&log, nil)), Done: func(r *Record) { recs = append(recs, r) }})
	for _, p := range []string{"/ok", "/panic"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", p, nil))
		if p == "/ok" && len(w.Body.String()) != 16 {
			t.Errorf("no request ID: %q", w.Body)
		}
	}
	if len(recs) != 2 || recs[0].Status != 200 || recs[0].BytesOut != 16 || recs[1].Status != 500 || recs[1].Identity != "me" {
		t.Errorf("%+v", recs)
	}
	if got := strings.Count(log.String(), "\n"); got != 1 || !strings.Contains(log.String(), "boom") {
		t.Errorf("log: %s", &log)
	}
}

func TestSendShortSource(t *testing.T) {
	w := httptest.NewRecorder()
	err := Send(w, strings.NewReader("hello"), 1, 10)
	var se *SendError
	if !errors.As(err, &se) || !se.Read {
		t.Fatal(err)
	}
	// Respond can still answer when the first bytes cannot be read.
	w = httptest.NewRecorder()
	if err := Respond(w, 206, strings.NewReader("hello"), 1, 10); errors.As(err, &se) && err == error(se) || err == nil || w.Body.Len() > 0 {
		t.Fatal(err)
	}
	w = httptest.NewRecorder()
	if err := Respond(w, 206, strings.NewReader("hello"), 1, 3); err != nil || w.Code != 206 || w.Body.String() != "ell" {
		t.Fatal(err, w.Code, w.Body)
	}
	w = httptest.NewRecorder()
	if err := Respond(w, 204, strings.NewReader(""), 0, 0); err != nil || w.Code != 204 {
		t.Fatal(err, w.Code)
	}
	if plainSends.slots.InUse() != 0 {
		t.Fatal("large buffers not given back")
	}
	big := strings.Repeat("0123456789", SendBufferBytes/4)
	w = httptest.NewRecorder()
	if err := Send(w, strings.NewReader(big), 7, int64(len(big)-7)); err != nil || w.Body.String() != big[7:] {
		t.Fatal(err, w.Body.Len())
	}
}

type zeros struct{}

func (zeros) ReadAt(p []byte, _ int64) (int, error) { return len(p), nil }

func TestDateText(t *testing.T) {
	when := time.Date(1999, 12, 31, 23, 59, 58, 0, time.FixedZone("x", 3600))
	for i := range 5000 {
		if got, want := DateText(when), when.UTC().Format(http.TimeFormat); got != want {
			t.Fatalf("%v: %q, want %q", when, got, want)
		}
		when = when.Add(time.Duration(i) * 37 * time.Minute)
	}
	for _, year := range []int{1, 999, 9999, 12000} {
		when := time.Date(year, 2, 3, 4, 5, 6, 7, time.UTC)
		if got, want := DateText(when), when.Format(http.TimeFormat); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
