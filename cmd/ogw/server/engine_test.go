package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A folder of somebody else's is not called read-only.
func TestExplainPermission(t *testing.T) {
	err := explain(&os.PathError{Op: "open", Path: filepath.Join("data", "LOCK"), Err: os.ErrPermission})
	if !strings.Contains(err.Error(), "as the user who owns the data folder") {
		t.Error(err)
	}
}
