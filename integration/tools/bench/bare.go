package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// The bare servers run in a process of their own, as ogw does: the command
// itself, started with -bare DIR. It prints its address and serves until its
// standard input ends.
//
//	GET  /files/NAME   a file of DIR, as net/http sends it (sendfile)
//	GET  /small        4 KiB from memory with the headers of an S3 answer
//	HEAD /small
//	PUT  /swallow      reads the body, keeps nothing

// bareServer is that process.
type bareServer struct {
	addr string
	cmd  *exec.Cmd
	in   io.Closer
}

func startBare(dir string) (*bareServer, error) {
	cmd, in, addr, err := startSelf("-bare", dir)
	if err != nil {
		return nil, fmt.Errorf("bare server: %w", err)
	}
	return &bareServer{addr: addr, cmd: cmd, in: in}, nil
}

// startSelf runs this program with args, as a process of its own that prints
// the address it listens on and goes on until its input is closed.
func startSelf(args ...string) (cmd *exec.Cmd, in io.Closer, addr string, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, "", err
	}
	cmd = exec.Command(self, args...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, "", err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stdin.Close()
		return nil, nil, "", errors.Join(err, cmd.Wait())
	}
	return cmd, stdin, strings.TrimSpace(line), nil
}

func (b *bareServer) stop() {
	b.in.Close()
	_ = b.cmd.Wait() // it has nothing to lose
}

func (b *bareServer) target() target { return target{b.addr, b.cmd.Process.Pid} }

// serveBare is what the process runs.
func serveBare(dir string) error {
	small := make([]byte, smallBytes)
	mux := http.NewServeMux()
	mux.Handle("GET /files/", http.StripPrefix("/files/", http.FileServer(http.Dir(dir))))
	mux.HandleFunc("GET /small", func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "binary/octet-stream")
		h.Set("Content-Length", "4096")
		h.Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
		h.Set("Etag", `"d41d8cd98f00b204e9800998ecf8427e"`)
		h.Set("Accept-Ranges", "bytes")
		h.Set("X-Amz-Request-Id", "0123456789ABCDEF")
		w.WriteHeader(http.StatusOK)
		if r.Method != http.MethodHead {
			w.Write(small)
		}
	})
	mux.HandleFunc("PUT /swallow", func(w http.ResponseWriter, r *http.Request) {
		buf := make([]byte, rawBufferBytes)
		_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, r.Body, buf) // the broken connection shows the client a short body
		w.WriteHeader(http.StatusOK)
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = srv.Close()
	}()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// bareGet is a request to the bare server.
func bareGet(addr, path string, size int64) rawRequest {
	return rawRequest{head: []byte("GET " + path + " HTTP/1.1\r\nHost: " + addr + "\r\n\r\n"), want: size}
}

// writeFile makes a file of the bare server.
func (e *env) writeFile(name string, b []byte) error {
	return os.WriteFile(filepath.Join(e.dir, name), b, 0o600)
}
