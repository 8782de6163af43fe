package apierr

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"ogw/vfs"
)

// sentinels returns the messages of all errors that a file declares with
// errors.New, by name.
func sentinels(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		call, ok := spec.Values[0].(*ast.CallExpr)
		if !ok || len(call.Args) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Err") {
			return true
		}
		if lit, ok := call.Args[0].(*ast.BasicLit); ok {
			out[spec.Names[0].Name], _ = strconv.Unquote(lit.Value)
		}
		return true
	})
	return out
}

func TestTableHoldsEverySentinel(t *testing.T) {
	inTable := map[string]Entry{}
	for _, e := range Table {
		if _, twice := inTable[e.Err.Error()]; twice && !errors.Is(e.Err, vfs.ErrCorrupt) {
			t.Errorf("%v stands twice in the table", e.Err)
		}
		inTable[e.Err.Error()] = e
	}
	known := 0
	for _, file := range []string{"../../vfs/internal/fserr/fserr.go", "table.go"} {
		for name, message := range sentinels(t, file) {
			known++
			e, ok := inTable[message]
			if !ok {
				t.Errorf("%s of %s has no entry", name, file)
				continue
			}
			if got := Of(fmt.Errorf("wrapped: %w", e.Err)); got != e {
				t.Errorf("%s: found %v, want %v", name, got, e)
			}
			if e.Code == "" || http.StatusText(e.Status) == "" {
				t.Errorf("%s: bad entry %v", name, e)
			}
		}
	}
	if known < 40 {
		t.Fatalf("only %d sentinels found: the test looks at the wrong files", known)
	}
}

func TestOfUnknown(t *testing.T) {
	if got := Of(errors.New("x")); got.Status != 500 {
		t.Errorf("unknown error: %v", got)
	}
	if got := Of(fmt.Errorf("read: %w", &http.MaxBytesError{Limit: 1})); got.Status != 413 {
		t.Errorf("body over the limit: %v", got)
	}
	if got := Of(context.Canceled); got.Status != 503 {
		t.Errorf("canceled: %v", got)
	}
}

func TestWrite(t *testing.T) {
	secret := fmt.Errorf("%w: at /var/lib/x", vfs.ErrIO)
	for _, c := range []struct {
		err          error
		accept, kind string
		want, not    string
	}{
		{fmt.Errorf("%w: a/b", vfs.ErrNoSuchKey), "", "application/json", "no such key: a/b", ""},
		{fmt.Errorf("%w: a/b", vfs.ErrNoSuchKey), "text/html,*/*;q=0.8", "text/plain; charset=utf-8", "no such key: a/b", "{"},
		{secret, "application/json", "application/json", "input/output error", "/var/lib"},
		{errors.New("secret"), "*/*", "application/json", "internal error", "secret"},
	} {
		w := httptest.NewRecorder()
		w.Header().Set("Content-Encoding", "gzip")
		r := httptest.NewRequest("GET", "/a", nil)
		r.Header.Set("Accept", c.accept)
		status := Write(w, r, c.err)
		body := w.Body.String()
		if w.Code != status || w.Header().Get("Content-Type") != c.kind || !strings.Contains(body, c.want) ||
			c.not != "" && strings.Contains(body, c.not) || w.Header().Get("Content-Encoding") != "" {
			t.Errorf("%v: %d %v %s", c.err, w.Code, w.Header(), body)
		}
		if c.kind == "application/json" {
			var b Body
			if err := json.Unmarshal(w.Body.Bytes(), &b); err != nil || b.Error.Code == "" {
				t.Errorf("%v: %v in %s", c.err, err, body)
			}
		}
	}
}
