package peers

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// depth is more steps than any of the models takes.
const depth = "-m1000000"

// question is one to a model, and whether what it asks about is safe.
type question struct {
	defines string
	safe    bool
}

// TestPeers checks what one removes while others read and write.
func TestPeers(t *testing.T) {
	ask(t, "peers.pml", []question{
		{"READS", true},
		{"READS NOWAIT", false},
		{"READS NOEPOCH", false},
		{"READS NOHELD", false},
		{"READS ONEMARK", false},
		{"INODES", true},
		{"INODES NOCLAIM", false},
		{"INODES EARLY", false},
		{"INODES LATE", false},
		{"INODES SAME", false},
		{"INODES KEEPERS", true},
		{"INODES KEEPERS NOMARK", false},
		{"INODES KEEPERS SHARED", false},
		{"NUMBERS", true},
		{"NUMBERS NOFENCE", false},
		{"NUMBERS GIVEBACK", false},
		{"LEFT", true},
		{"LEFT NOUSE", false},
		{"LEFT NODOUBT", false},
		{"LEFT NORENEW", false},
		{"LEFT ALLSETTLED", false},
	})
}

// TestCoherence checks what one answers from memory while others change it.
func TestCoherence(t *testing.T) {
	ask(t, "coherence.pml", []question{
		{"TOLD", true},
		{"TOLD NOWAIT", false},
		{"TOLD AFTER", false},
		{"TOLD NOFLOOR", false},
		{"TOLD NOWELCOME", false},
		{"TOLD PUBFIRST", false},
		{"TOLD NOLOST", false},
		{"TOLD NODOUBT", false},
		{"TOLD LATESTAMP", false},
		{"TOLD NOMOVE", false},
		{"TOLD NOFENCE", false},
		{"OWN", true},
		{"OWN ANYDONE", false},
		{"JOIN", true},
		{"JOIN EARLY", false},
		{"JOIN NOLOOK", false},
		{"JOIN OLDLOOK", false},
	})
}

// ask checks a model, and that it finds what each rule is for.
func ask(t *testing.T, model string, questions []question) {
	t.Helper()
	for _, x := range questions {
		t.Run(x.defines, func(t *testing.T) {
			if out := check(t, model, strings.Fields(x.defines)); safe(t, out) != x.safe {
				t.Errorf("safe is %v\n%s", !x.safe, out)
			}
		})
	}
}

// check walks all states of a model, and returns what the checker says.
func check(t *testing.T, model string, defines []string) string {
	t.Helper()
	dir := t.TempDir()
	text, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, model), text, 0o600); err != nil {
		t.Fatal(err)
	}
	spin := []string{"spin", "-a"}
	for _, d := range defines {
		spin = append(spin, "-D"+d)
	}
	run(t, dir, append(spin, model)...)
	run(t, dir, "gcc", "-w", "-O1", "-o", "pan", "pan.c")
	return run(t, dir, filepath.Join(dir, "pan"), "-a", depth)
}

// run runs a command. The checker also ends well when it found something.
func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

var errorsFound = regexp.MustCompile(`errors: (\d+)`)

// safe reports whether all states were walked and none violates what must hold.
func safe(t *testing.T, out string) bool {
	t.Helper()
	m := errorsFound.FindStringSubmatch(out)
	if m == nil || strings.Contains(out, "max search depth too small") {
		t.Fatalf("the checker did not walk all states:\n%s", out)
	}
	return m[1] == "0"
}
