package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

const startTimeout = 20 * time.Second

// server is one ogw that is measured.
type server struct {
	dir    string
	data   string
	config string
	bin    string
	addr   string // of the S3 gateway
	cmd    *exec.Cmd
	client *client
}

// startServer runs ogw over a new data folder.
func startServer(e *env) (*server, error) {
	dir, err := os.MkdirTemp(e.dir, "data-*")
	if err != nil {
		return nil, err
	}
	return startServerOn(e, filepath.Join(dir, "data"))
}

// startServerOn runs ogw with an S3 gateway over a data folder.
func startServerOn(e *env, data string) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{bin: e.bin, data: data, addr: l.Addr().String(), client: newClient()}
	l.Close()
	if s.dir, err = os.MkdirTemp(e.dir, "server-*"); err != nil {
		return nil, err
	}
	s.config = filepath.Join(s.dir, "ogw.toml")
	text := fmt.Sprintf("[cluster]\ndir = %q\n[log]\naccess = false\nlevel = \"warn\"\n[[gateway]]\nprotocol = \"s3\"\nlisten = %q\n", data, s.addr)
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s.cmd = exec.Command(e.bin, "serve", "--config", s.config)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		// An answer, not only a connection: the kernel accepts those before
		// anything is served.
		resp, err := s.client.http.Get(s.url("/"))
		if err == nil {
			resp.Body.Close()
			break
		}
		if time.Since(begin) > startTimeout {
			_ = s.cmd.Process.Kill()
			b, _ := os.ReadFile(log.Name())
			return nil, fmt.Errorf("ogw does not answer on %s: %s", s.addr, b)
		}
	}
	s.client.creds, err = readCredentials(data)
	e.measured = s.data
	return s, err
}

func (s *server) target() target { return target{s.addr, s.cmd.Process.Pid} }

func (s *server) url(path string) string { return "http://" + s.addr + path }

// mount makes a FUSE mount in the server.
func (s *server) mount(args ...string) (string, error) {
	mnt, err := os.MkdirTemp(s.dir, "mnt-*")
	if err != nil {
		return "", err
	}
	if out, err := exec.Command(s.bin, append(append([]string{"mount", "--config", s.config}, args...), mnt)...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("mount: %w: %s", err, out)
	}
	return mnt, nil
}

// umount takes a mount away; stopping the server would, too.
func (s *server) umount(mnt string) {
	_ = exec.Command(s.bin, "umount", "--config", s.config, mnt).Run()
}

// stop ends the server as Ctrl-C does.
func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGINT)
	_ = s.cmd.Wait()
}

// addUser makes a user who is no administrator.
func (s *server) addUser(name string) (c aws.Credentials, err error) {
	out, err := exec.Command(s.bin, "user", "add", name, "--config", s.config, "--json").Output()
	if err != nil {
		return c, fmt.Errorf("user add: %w", err)
	}
	var u struct {
		Keys []struct{ ID, Secret string }
	}
	if err := json.Unmarshal(out, &u); err != nil || len(u.Keys) != 1 {
		return c, fmt.Errorf("user add: %w: %s", err, out)
	}
	return aws.Credentials{AccessKeyID: u.Keys[0].ID, SecretAccessKey: u.Keys[0].Secret}, nil
}

// readCredentials reads the file that the first start wrote.
func readCredentials(data string) (aws.Credentials, error) {
	b, err := os.ReadFile(filepath.Join(data, "credentials"))
	if err != nil {
		return aws.Credentials{}, err
	}
	var c aws.Credentials
	for line := range strings.SplitSeq(string(b), "\n") {
		name, value, _ := strings.Cut(line, "=")
		switch strings.TrimSpace(name) {
		case "aws_access_key_id":
			c.AccessKeyID = strings.TrimSpace(value)
		case "aws_secret_access_key":
			c.SecretAccessKey = strings.TrimSpace(value)
		}
	}
	return c, nil
}
