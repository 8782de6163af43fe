package nfsvm

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Guest is a virtual machine to boot.
type Guest struct {
	Cache  string   // folder for the kernel and the RAM disk, kept between runs
	Script string   // what runs in the guest: text of a busybox shell script
	Env    []string // NAME=value for the script
	Port   int      // of the NFS server on this host's loopback
	// Tap, if set, is the name of a tap device that is the guest's network, in
	// place of that one port: the server is at 10.0.2.100, the guest at
	// 10.0.2.15, and both can call each other.
	Tap string
	// Enter is put before qemu's command line: the namespace of Tap.
	Enter []string
	// Files are copied into the guest's memory: path there, path here.
	Files map[string]string
	// MemoryMiB of the guest.
	MemoryMiB int
	Timeout   time.Duration
	// Line is called with every line that the guest prints.
	Line func(string)
	// Host is called with the words that the guest prints behind "@host ".
	Host func(string)
}

// Boot runs the guest until its script ends and returns the exit code of
// the script.
func (g *Guest) Boot(ctx context.Context) (code int, err error) {
	if out, err := exec.CommandContext(ctx, "bash", "-c", prepare, "prepare.sh", g.Cache).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("preparing the kernel: %w\n%s", err, out)
	}
	work, err := os.MkdirTemp("", "ogw-nfsvm-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(work)
	if err := g.ramDisk(ctx, work); err != nil {
		return 0, err
	}
	relay := filepath.Join(work, "relay")
	text := fmt.Sprintf("#!/bin/sh\nexec socat -b 262144 - TCP:127.0.0.1:%d,nodelay\n", g.Port)
	if err := os.WriteFile(relay, []byte(text), 0o755); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, g.Timeout)
	defer cancel()
	return g.run(ctx, work, relay)
}

func (g *Guest) run(ctx context.Context, work, relay string) (int, error) {
	console, result := filepath.Join(work, "console"), filepath.Join(work, "result")
	network := "user,id=net,restrict=on,guestfwd=tcp:10.0.2.100:2049-cmd:" + relay
	if g.Tap != "" {
		network = "tap,id=net,script=no,downscript=no,ifname=" + g.Tap
	}
	args := append(slices.Clone(g.Enter), "qemu-system-x86_64", "-accel", "tcg", "-M", "q35", "-cpu", "max",
		"-m", strconv.Itoa(g.MemoryMiB), "-nodefaults", "-display", "none", "-no-reboot",
		"-kernel", filepath.Join(g.Cache, "vmlinuz"), "-initrd", filepath.Join(work, "initrd"),
		// On a busy host the emulated timer may tick too late for the kernel's
		// check of it, which is none of ours.
		"-append", "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check",
		"-serial", "file:"+console, "-serial", "stdio", "-serial", "file:"+result,
		"-netdev", network, "-device", "virtio-net-pci,netdev=net,romfile=")
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	g.follow(out)
	err = cmd.Wait()
	if ctx.Err() != nil {
		return 0, fmt.Errorf("the guest did not end in time: %w\n%s", ctx.Err(), tail(console))
	}
	if err != nil {
		return 0, fmt.Errorf("qemu: %w\n%s", err, stderr.String())
	}
	text, err := os.ReadFile(result)
	if err != nil {
		return 0, err
	}
	code, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("the guest gave no exit code\n%s", tail(console))
	}
	return code, nil
}

func (g *Guest) follow(out io.Reader) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		line := strings.TrimRight(lines.Text(), "\r")
		if word, ok := strings.CutPrefix(line, "@host "); ok {
			if g.Host != nil {
				g.Host(word)
			}
			continue
		}
		if g.Line != nil {
			g.Line(line)
		}
	}
	_, _ = io.Copy(io.Discard, out)
}

//go:embed guest/*.sh
var guest embed.FS

//go:embed prepare.sh
var prepare string

// Script returns scripts of the folder guest, behind the functions that all of them use.
func Script(names ...string) string {
	text := ""
	for _, name := range append([]string{"lib"}, names...) {
		b, err := guest.ReadFile("guest/" + name + ".sh")
		if err != nil {
			panic(err) // a name that was written here
		}
		text += string(b)
	}
	return text
}

// ramDisk writes work/initrd: the base, and behind it what belongs to this
// run. The kernel unpacks one after the other.
func (g *Guest) ramDisk(ctx context.Context, work string) error {
	root := filepath.Join(work, "root")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	env := ""
	for _, e := range g.Env {
		name, value, _ := strings.Cut(e, "=")
		env += "export " + name + "='" + strings.ReplaceAll(value, "'", `'\''`) + "'\n"
	}
	for name, text := range map[string]string{"guest.sh": g.Script, "guest.env": env} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	for there, here := range g.Files {
		to := filepath.Join(root, there)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if out, err := exec.CommandContext(ctx, "cp", "-a", here, to).CombinedOutput(); err != nil {
			return fmt.Errorf("copying %s: %w\n%s", here, err, out)
		}
	}
	pack := exec.CommandContext(ctx, "sh", "-c",
		`cp "$1/base.cpio" "$2/initrd" && cd "$2/root" && find . | cpio -o -H newc --quiet -R 0:0 >> "$2/initrd"`,
		"sh", g.Cache, work)
	if out, err := pack.CombinedOutput(); err != nil {
		return fmt.Errorf("packing the RAM disk: %w\n%s", err, out)
	}
	return nil
}

// tail returns the end of the kernel's console.
func tail(file string) string {
	b, _ := os.ReadFile(file)
	return string(b[max(0, len(b)-4096):])
}
