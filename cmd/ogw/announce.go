package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"

	"ogw/cmd/ogw/config"
	"ogw/cmd/ogw/server"
	"ogw/cmd/ogw/terminal"
	"ogw/httpapi/admin"
	"ogw/vfs/users"
)

// announcement is what serve prints when all gateways listen.
type announcement struct {
	Version  string          `json:"version"`
	Program  string          `json:"-"` // how the shell finds this program
	Dir      string          `json:"dir"`
	PID      int             `json:"pid"`
	Gateways []admin.Gateway `json:"gateways"`
	// Credentials is the file with root's key, "" if there is none, as where secrets are
	// sealed.
	Credentials string `json:"credentials,omitempty"`
	// First reports whether the credentials were made at this start.
	First bool `json:"first,omitempty"`
	// AccessKey and SecretKey are printed at the first start alone, and to a
	// terminal: what else reads this keeps it, in a journal or a log, for all
	// who may read that.
	AccessKey string `json:"access_key,omitempty"`
	SecretKey string `json:"secret_key,omitempty"`
}

// announce prints what runs and how to use it.
func (s *serve) announce(p *server.Server) error {
	a := announcement{
		Version: version, Program: program(), Dir: s.cfg.Cluster.Dir, PID: os.Getpid(), Gateways: p.Gateways(),
	}
	var made *users.AccessKey
	a.Credentials, made = p.RootKey()
	for i := range a.Gateways {
		a.Gateways[i].State = "serving" // the sockets are open already
	}
	a.First = made != nil
	if a.First && terminal.Is(s.env.stdout) {
		a.AccessKey, a.SecretKey = made.ID, made.Secret
	}
	if s.json {
		return s.printJSON(a)
	}
	_, err := fmt.Fprint(s.env.stdout, a.text())
	return err
}

func (a *announcement) text() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("ogw %s serves %s\n", a.Version, a.Dir)
	switch {
	case a.AccessKey != "" && a.Credentials == "":
		line("First start. The keys of the user root, shown this once (the store keeps them sealed):\n")
		line("    access key  %s\n    secret key  %s\n", a.AccessKey, a.SecretKey)
	case a.AccessKey != "":
		line("First start. The keys of the user root, printed this once and kept in\n%s:\n", a.Credentials)
		line("    access key  %s\n    secret key  %s\n", a.AccessKey, a.SecretKey)
	case a.First && a.Credentials == "":
		line("First start. The keys of the user root are sealed and shown on a terminal only. Make new ones with\n    %s user rotate %s --dir %s\n", shellWord(a.Program), server.RootUser, shellWord(a.Dir))
	case a.First:
		line("First start. The keys of the user root are in\n%s\n(mode 0600): not here, where others may read along.\n", a.Credentials)
	}
	for _, g := range a.Gateways {
		host, port := reachable(g.Listen)
		url := "http://" + net.JoinHostPort(host, port)
		if g.TLS {
			url = "https://" + net.JoinHostPort(host, port)
		}
		if path, ok := config.SocketPath(g.Listen); ok {
			curl := "curl --unix-socket " + shellWord(path)
			line("%-5s %s", heading(g, "REST"), g.Listen)
			line("    %s -T FILE http://localhost/photos/FILE", curl)
			line("    %s http://localhost/photos/\n", curl)
			continue
		}
		switch g.Protocol {
		case "s3":
			line("%-5s %s", heading(g, "S3"), url)
			if a.Credentials != "" {
				line("    export AWS_SHARED_CREDENTIALS_FILE=%s AWS_DEFAULT_REGION=us-east-1", shellWord(a.Credentials))
			} else {
				line("    export AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=… AWS_DEFAULT_REGION=us-east-1")
			}
			line("    aws --endpoint-url %s s3 mb s3://photos", url)
			line("    aws --endpoint-url %s s3 cp FILE s3://photos/\n", url)
		case "rest":
			line("%-5s %s", heading(g, "REST"), url)
			line("    curl -T FILE %s/photos/FILE", url)
			line("    curl %s/photos/\n", url)
		case "nfs":
			line("%-5s %s", heading(g, "NFS"), g.Listen)
			line("    sudo mount -t nfs -o %s %s:/ /mnt\n", nfsOptions(g, host, port), host)
		}
	}
	if len(a.Gateways) == 0 {
		line("No gateway listens: only mounts and the commands reach this store.\n")
	}
	line("FUSE\n    %s mount --dir %s /mnt\n", shellWord(a.Program), shellWord(a.Dir))
	line("Ctrl-C stops.")
	return b.String()
}

// nfsOptions are what a Linux client needs to mount an NFS gateway. Without
// a portmapper it finds neither the ports nor the lock manager; and on the
// gateway's own machine the kernel's lock manager would take the place of the
// gateway's in the portmapper.
func nfsOptions(g admin.Gateway, host, port string) string {
	options := "vers=3,tcp"
	if !g.Portmapper {
		options += ",port=" + port + ",mountport=" + port
	}
	if !g.Portmapper || config.Loopback(net.JoinHostPort(host, port)) {
		options += ",nolock"
	}
	return options
}

// heading names a gateway; one of several of a protocol by its own name.
func heading(g admin.Gateway, protocol string) string {
	if g.Name == "" || strings.EqualFold(g.Name, protocol) {
		return protocol
	}
	return protocol + " (" + g.Name + ")"
}

// program is what to type for this program: its name where the shell finds
// it by that, else its path.
func program() string {
	self, err := os.Executable()
	if err != nil {
		return "ogw"
	}
	if found, err := exec.LookPath("ogw"); err == nil {
		a, errA := os.Stat(found)
		b, errB := os.Stat(self)
		if errA == nil && errB == nil && os.SameFile(a, b) {
			return "ogw"
		}
	}
	return self
}

// reachable returns an address under which a listener is reached.
func reachable(listen string) (host, port string) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen, ""
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	return host, port
}

// shellWord quotes s for a shell if need be.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+,:@%", r)
	}
	if strings.TrimFunc(s, plain) == "" && s != "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
