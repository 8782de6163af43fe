package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// Versitygw is an S3 server of others on loopback, over a folder: a bucket is a
// folder in it, and an object is a file.
type Versitygw struct {
	t       testing.TB
	binary  string
	addr    string
	Dir     string
	Key     string
	Secret  string
	env     []string
	process *Process
}

// StartVersitygw starts a new server with these buckets and ends it with the
// test. The environment variable OGW_VERSITYGW names the server's binary, which
// make builds; without it the test is skipped.
func StartVersitygw(t testing.TB, buckets ...string) *Versitygw {
	t.Helper()
	binary := os.Getenv("OGW_VERSITYGW")
	if binary == "" {
		t.Skip("OGW_VERSITYGW names no versitygw: make test-cluster")
	}
	dir := TempDir(t)
	v := &Versitygw{t: t, binary: binary, addr: FreeAddr(t), Dir: filepath.Join(dir, "data"), Key: "testkey", Secret: "testsecret"}
	for _, bucket := range buckets {
		if err := os.MkdirAll(filepath.Join(v.Dir, bucket), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(v.stop)
	v.Start()
	return v
}

// Twin starts another server over the same folder: another program, with an addition to
// its environment.
func (v *Versitygw) Twin(binary, env string) *Versitygw {
	v.t.Helper()
	twin := *v
	twin.binary, twin.env, twin.addr = binary, []string{env}, FreeAddr(v.t)
	v.t.Cleanup(twin.stop)
	twin.Start()
	return &twin
}

// Start starts the server, again if it was killed, and waits until it answers.
func (v *Versitygw) Start() {
	v.t.Helper()
	cmd := exec.Command(v.binary, "--port", v.addr, "--access", v.Key, "--secret", v.Secret, "posix", v.Dir)
	cmd.Env = append(os.Environ(), v.env...)
	process, err := Start(cmd, v.log())
	if err != nil {
		v.t.Fatal(err)
	}
	v.process = process
	if err := Await(process.Done(), v.addr); err != nil {
		v.t.Fatalf("versitygw: %v\n%s", err, Tail(v.log()))
	}
}

func (v *Versitygw) log() string { return v.Dir + "." + v.addr + ".log" }

// Addr is its address, as host and port.
func (v *Versitygw) Addr() string { return v.addr }

// Kill ends the server as a crash does.
func (v *Versitygw) Kill() {
	v.process.Kill()
	v.process = nil
}

// Signal sends one to the server.
func (v *Versitygw) Signal(s syscall.Signal) {
	v.t.Helper()
	if err := v.process.Signal(s); err != nil {
		v.t.Fatal(err)
	}
}

func (v *Versitygw) stop() {
	if v.process == nil {
		return
	}
	if err := v.process.Stop(stopLimit); err != nil && v.t.Failed() {
		v.t.Logf("versitygw: %v\n%s", err, Tail(v.log()))
	}
}
