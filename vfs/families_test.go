package vfs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestFamilies holds the drawing of the families of files in doc.go: each file
// stands in one of them, and each name is that of a file.
func TestFamilies(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	drawing := regexp.MustCompile(`(?s)inode are one thing:\n//\n(.*?)\n//\n`).FindSubmatch(text)
	if drawing == nil {
		t.Fatal("doc.go has no drawing of the families")
	}
	var drawn []string
	for line := range strings.Lines(string(drawing[1])) {
		names := strings.Fields(strings.TrimPrefix(line, "//"))
		if !strings.HasPrefix(line, "//\t ") {
			names = names[1:] // the family's own
		}
		drawn = append(drawn, names...)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(f, ".go")
		if strings.HasSuffix(name, "_test") || name == "doc" {
			continue
		}
		i := slices.Index(drawn, name)
		if i < 0 {
			t.Errorf("%s is in no family in doc.go: put it into the lowest one above all that it uses", f)
			continue
		}
		drawn = slices.Delete(drawn, i, i+1)
	}
	for _, name := range drawn {
		t.Errorf("doc.go names %s, which is no file, or names it twice", name)
	}
}
