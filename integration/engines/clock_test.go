package engines

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"ogw/integration/testenv"
)

// clockVariable says how the wall clock of a skewed program is off: by SECONDS, or by
// "SECONDS EVERY", ahead and behind in turns, each for so many seconds.
const clockVariable = "OGW_CLOCK_OFF"

// A Go program asks the kernel for the time, without a library that another one could stand
// in for. So the program is built with a package time that adds something.
const (
	clockRead    = "\tsec, nsec, mono := runtimeNow()\n"
	clockSkewed  = clockRead + "\tsec += clockOff(mono)\n"
	clockSetting = `package time

import "syscall"

var clockBy, clockEvery = clockSetting()

func clockSetting() (by, every int) {
	s, _ := syscall.Getenv("` + clockVariable + `")
	for i := range len(s) {
		if s[i] == ' ' {
			by, _ = atoi(s[:i])
			every, _ = atoi(s[i+1:])
			return by, every
		}
	}
	by, _ = atoi(s)
	return by, 0
}

func clockOff(mono int64) int64 {
	if clockEvery > 0 && mono/1e9/int64(clockEvery)%2 == 1 {
		return -int64(clockBy)
	}
	return int64(clockBy)
}
`
)

// skews builds programs whose wall clocks can be off.
type skews struct {
	t       *testing.T
	dir     string
	overlay string
}

func newSkews(t *testing.T) *skews {
	t.Helper()
	std, err := exec.Command("go", "list", "-f", "{{.Dir}}/time.go", "time").Output()
	if err != nil {
		t.Fatal(err)
	}
	source := strings.TrimSpace(string(std))
	b, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), clockRead) {
		t.Fatalf("%s reads the clock in another way", source)
	}
	s := &skews{t: t, dir: testenv.TempDir(t)}
	s.overlay = filepath.Join(s.dir, "overlay.json")
	files := map[string]string{
		source: strings.Replace(string(b), clockRead, clockSkewed, 1),
		filepath.Join(filepath.Dir(source), "clockoff.go"): clockSetting,
	}
	replace := map[string]string{}
	for path, text := range files {
		replace[path] = filepath.Join(s.dir, filepath.Base(path))
		if err := os.WriteFile(replace[path], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(s.overlay, list, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// build builds a program of the module that dir is in.
func (s *skews) build(dir, program string) (binary string) {
	s.t.Helper()
	binary = filepath.Join(s.dir, filepath.Base(program))
	build := testenv.Build("-overlay", s.overlay, "-o", binary, program)
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		s.t.Fatalf("building %s: %v\n%s", program, err, out)
	}
	return binary
}

// anonymous returns a client that signs nothing.
func anonymous(t *testing.T, s *testenv.Server) *minio.Client {
	t.Helper()
	c, err := minio.New(s.S3, &minio.Options{Creds: credentials.NewStatic("", "", "", credentials.SignatureAnonymous), Region: "us-east-1", MaxRetries: 1})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
