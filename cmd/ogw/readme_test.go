package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The Go program of README.md runs in a module of its own, made by the commands
// that the text shows.
func TestReadmeProgram(t *testing.T) {
	_, section, ok := strings.Cut(readFile(t, top+"/README.md"), "\n## Go\n")
	if !ok {
		t.Fatal("README.md has no section on Go")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var commands []string
	program := ""
	for _, block := range indentedBlocks(section) {
		if strings.HasPrefix(block, "package main\n") {
			program = block
		} else {
			commands = append(commands, block)
		}
	}
	if program == "" || len(commands) != 2 || !strings.Contains(commands[0], "go mod edit -replace ogw=../ogw") {
		t.Fatalf("README.md shows the commands %q and the program:\n%s", commands, program)
	}
	repository, err := filepath.Abs(top)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(repository, filepath.Join(dir, "ogw")); err != nil {
		t.Fatal(err)
	}
	shell(t, dir, commands[0])
	example := filepath.Join(dir, "example")
	if err := os.WriteFile(filepath.Join(example, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time the bucket is there
		out := shell(t, example, commands[1])
		if want := "2026/cat.txt c1d0e44b09d5ac52f90f463fe410fc88\n"; out != want {
			t.Errorf("printed %q, want %q", out, want)
		}
	}
	if out := shell(t, example, "gofmt -l . && go vet ."); out != "" {
		t.Errorf("gofmt and vet: %s", out)
	}
}

// shell runs commands in dir and returns what they print.
func shell(t *testing.T, dir, commands string) string {
	t.Helper()
	cmd := exec.Command("sh", "-ec", commands)
	cmd.Dir = dir
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", commands, err, out, errs.String())
	}
	return string(out)
}

// indentedBlocks returns the blocks of a Markdown text that are indented by
// four spaces, without them.
func indentedBlocks(text string) (blocks []string) {
	block := ""
	for line := range strings.Lines(text + "\nend\n") {
		code, isCode := strings.CutPrefix(line, "    ")
		switch {
		case isCode:
			block += code
		case strings.TrimSpace(line) == "" && block != "":
			block += "\n"
		case block != "":
			blocks = append(blocks, strings.TrimRight(block, "\n")+"\n")
			block = ""
		}
	}
	return blocks
}
