package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"ogw/integration/tools/bench/nfsclient"
)

// nfsServer is one server that the same clients measure.
type nfsServer struct {
	name   string
	pid    int
	url    string            // of its export, for libnfs
	client *nfsclient.Client // beside the RPC echo
	load   *libnfsload
	stop   func()

	made int // names used so far in "dir"
}

// startNFS runs ogw with an NFS gateway over a new folder.
func startNFS(e *env) (*nfsServer, error) {
	dir, err := os.MkdirTemp(e.dir, "nfs-*")
	if err != nil {
		return nil, err
	}
	return startNFSOn(e, dir)
}

// startNFSOn runs ogw with an NFS gateway over a folder, which holds its
// configuration, too.
func startNFSOn(e *env, dir string) (*nfsServer, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "ogw.toml")
	text := fmt.Sprintf("[cluster]\ndir = %q\n[log]\nlevel = \"warn\"\n[[gateway]]\nprotocol = \"nfs\"\nlisten = %q\n",
		filepath.Join(dir, "data"), addr)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	e.measured = filepath.Join(dir, "data")
	cmd := exec.Command(e.bin, "serve", "--config", config)
	return connectNFS("ogw", cmd, filepath.Join(dir, "log"), addr, addr, "/")
}

// startGanesha runs nfs-ganesha with its VFS back end over a new folder. It
// registers with rpcbind, which must run.
func startGanesha(e *env) (*nfsServer, error) {
	dir, err := os.MkdirTemp(e.dir, "ganesha-*")
	if err != nil {
		return nil, err
	}
	files := filepath.Join(dir, "files")
	if err := os.Mkdir(files, 0o755); err != nil {
		return nil, err
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	mountAddr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "ganesha.conf")
	text := fmt.Sprintf(`NFS_CORE_PARAM { NFS_Port = %s; MNT_Port = %s; Protocols = 3; Enable_NLM = false; Enable_RQUOTA = false; }
EXPORT { Export_Id = 1; Path = %q; Pseudo = "/b"; Access_Type = RW; Squash = No_Root_Squash; SecType = sys; Protocols = 3; Transports = TCP; FSAL { Name = VFS; } }
`, port(addr), port(mountAddr), files)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command("ganesha.nfsd", "-F", "-f", config, "-L", "STDERR", "-p", filepath.Join(dir, "pid"))
	return connectNFS("ganesha", cmd, filepath.Join(dir, "log"), addr, mountAddr, files)
}

func port(addr string) string {
	_, p, _ := net.SplitHostPort(addr)
	return p
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// connectNFS starts a server and mounts from it.
func connectNFS(name string, cmd *exec.Cmd, log, addr, mountAddr, path string) (*nfsServer, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &nfsServer{name: name, pid: cmd.Process.Pid, url: fmt.Sprintf(
		"nfs://127.0.0.1%s?version=3&nfsport=%s&mountport=%s&uid=0&gid=0", path, port(addr), port(mountAddr))}
	s.stop = func() {
		if s.load != nil {
			s.load.stop()
		}
		if s.client != nil {
			s.client.Close()
		}
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait() // it has nothing to lose
	}
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if s.client, err = nfsclient.Dial(addr, mountAddr, path); err == nil {
			return s, nil
		}
		if time.Since(begin) > startTimeout {
			s.stop()
			text, _ := os.ReadFile(log)
			return nil, fmt.Errorf("%s: %w: %s", name, err, text)
		}
	}
}

// The RPC echo server runs in a process of its own: the command itself,
// started with -rpc-echo. It answers every call with an answer as long as
// that of a GETATTR, and does nothing else.

// echoBytes is the size of an answer to GETATTR, with its record mark.
const echoBytes = 4 + 24 + 4 + 84

func startEcho() (*nfsServer, error) {
	cmd, in, addr, err := startSelf("-rpc-echo")
	if err != nil {
		return nil, fmt.Errorf("RPC echo: %w", err)
	}
	s := &nfsServer{name: "RPC echo", pid: cmd.Process.Pid, stop: func() {
		in.Close()
		_ = cmd.Wait() // it has nothing to lose
	}}
	if s.client, err = nfsclient.Connect(addr); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func serveEcho() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		l.Close()
	}()
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go echo(c)
	}
}

func echo(c net.Conn) {
	defer c.Close()
	br, bw := bufio.NewReaderSize(c, 64<<10), bufio.NewWriterSize(c, 64<<10)
	answer := make([]byte, echoBytes)
	binary.BigEndian.PutUint32(answer, 1<<31|echoBytes-4)
	binary.BigEndian.PutUint32(answer[8:], 1)
	for {
		if br.Buffered() == 0 && bw.Flush() != nil {
			return
		}
		head, err := br.Peek(8)
		if err != nil {
			return
		}
		copy(answer[4:8], head[4:])
		if _, err := br.Discard(4 + int(binary.BigEndian.Uint32(head)&^(1<<31))); err != nil {
			return
		}
		if _, err := bw.Write(answer); err != nil {
			return
		}
	}
}
