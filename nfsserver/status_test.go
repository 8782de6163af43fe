package nfsserver

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"

	"ogw/vfs"
)

// vfsSentinels returns the texts of all errors that vfs takes from package fserr.
func vfsSentinels(t *testing.T) map[string]string {
	f, err := parser.ParseFile(token.NewFileSet(), "../vfs/internal/fserr/fserr.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Values) != 1 {
			return true
		}
		call, ok := v.Values[0].(*ast.CallExpr)
		if !ok || len(call.Args) != 1 {
			return true
		}
		if lit, ok := call.Args[0].(*ast.BasicLit); ok {
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			found[text] = v.Names[0].Name
		}
		return true
	})
	if len(found) < 40 {
		t.Fatalf("only %d sentinels found in fserr.go", len(found))
	}
	return found
}

func TestEverySentinelHasAStatus(t *testing.T) {
	missing := vfsSentinels(t)
	for _, e := range errorTable {
		delete(missing, e.err.Error())
		if got := statusOf(fmt.Errorf("somewhere: %w", e.err)); got != e.status {
			t.Errorf("%v: %v, want %v", e.err, got, e.status)
		}
		if _, ok := statusNames[e.status]; !ok || e.status == OK || e.status == ErrServerFault {
			t.Errorf("%v is answered with %v", e.err, e.status)
		}
		if _, ok := map[uint32]bool{0: true}[mountStatus(e.err)]; ok {
			t.Errorf("%v makes a mount succeed", e.err)
		}
	}
	for _, name := range missing {
		t.Errorf("vfs.%s has no status", name)
	}
}

func TestStatusOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want Status
	}{
		{nil, OK},
		{ErrBadHandle, ErrBadHandle},
		{fmt.Errorf("x: %w", ErrXDev), ErrXDev},
		{fmt.Errorf("%w: %w", vfs.ErrUnavailable, errors.New("node down")), ErrJukebox},
		{errors.New("surprise"), ErrServerFault},
	} {
		if got := statusOf(c.err); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}
