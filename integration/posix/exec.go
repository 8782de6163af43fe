package posix

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

var execCases = []namedCase{
	{"rights to execute", func(t *T, d string) {
		p := d + "/run"
		write(t, p, "#!/bin/sh\nexit 0\n")
		for _, id := range identities {
			must(t, unix.Chown(p, id.owner, id.group))
			for perm := range uint32(8) {
				must(t, unix.Chmod(p, id.only(perm)|0o444)) // the shell reads it
				want := unix.EACCES
				if perm&1 != 0 {
					want = 0
				}
				err := runAs(p, id.groups)
				wantErr(t, fmt.Sprintf("execve, %s has %d", id.name, perm), err, want)
			}
		}
		must(t, unix.Chmod(p, 0o644))
		wantErr(t, "execve by root without any x", execErr(p), unix.EACCES)
		for _, k := range []string{dir, fifo, sock} {
			makeKind(t, k, d+"/"+k, 0o777)
			wantErr(t, "execve of a "+k, execErr(d+"/"+k), unix.EACCES)
		}
		wantErr(t, "execve of nothing", execErr(d+"/none"), unix.ENOENT)
		wantErr(t, "execve through a file", execErr(p+"/x"), unix.ENOTDIR)
		write(t, d+"/garbage", "neither script nor program")
		must(t, unix.Chmod(d+"/garbage", 0o755))
		wantErr(t, "execve of garbage", execErr(d+"/garbage"), unix.ENOEXEC)
	}},
	{"ETXTBSY", func(t *T, d string) {
		if !t.has(Exec) {
			t.Skip("the file system has no ETXTBSY")
		}
		p := d + "/sleep"
		program, err := os.ReadFile("/bin/sleep")
		must(t, err)
		must(t, os.WriteFile(p, program, 0o755))
		// Other processes may hold a copy of the descriptor for a moment,
		// between their fork and their exec.
		var cmd *exec.Cmd
		eventually(t, func() error {
			cmd = exec.Command(p, "100")
			return cmd.Start()
		})
		defer cmd.Wait()
		defer cmd.Process.Kill()
		for name, flags := range map[string]int{"O_WRONLY": unix.O_WRONLY, "O_RDWR": unix.O_RDWR, "O_TRUNC": unix.O_WRONLY | unix.O_TRUNC} {
			wantErr(t, "open("+name+") of a running program", openErr(p, flags, 0), unix.ETXTBSY)
		}
		wantErr(t, "truncate of a running program", unix.Truncate(p, 0), unix.ETXTBSY)
		wantErr(t, "open(O_RDONLY) of a running program", openErr(p, unix.O_RDONLY, 0), 0)
		wantErr(t, "chmod of a running program", unix.Chmod(p, 0o700), 0)
		wantErr(t, "rename of a running program", unix.Rename(p, p+"2"), 0)
		wantErr(t, "unlink of a running program", unix.Unlink(p+"2"), 0)
		time.Sleep(time.Millisecond)
		check(t, cmd.Process.Signal(syscall.Signal(0)) == nil, "the program ended when its file was removed")

		must(t, os.WriteFile(p, program, 0o755))
		open(t, p, unix.O_WRONLY)
		wantErr(t, "execve of a file open for writing", execErr(p), unix.ETXTBSY)
	}},
}

// runAs executes p as userA.
func runAs(p string, groups []uint32) error {
	proc, err := os.StartProcess(p, []string{p}, &os.ProcAttr{Sys: &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: userA, Gid: groupA, Groups: groups}}})
	if err != nil {
		return err
	}
	_, err = proc.Wait()
	return err
}
