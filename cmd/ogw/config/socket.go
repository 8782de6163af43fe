package config

import (
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	socketScheme = "unix:"
	// maxSocketPath is what fits into sockaddr_un, less the final NUL: longer
	// ones clients could not name.
	maxSocketPath = 107
	// defaultSocketMode lets every local user connect: who it is, is known.
	defaultSocketMode = 0o666
)

// SocketPath returns the path of an address of the form unix:PATH.
func SocketPath(listen string) (path string, ok bool) { return strings.CutPrefix(listen, socketScheme) }

func (g *Gateway) validateListen(v *validator) {
	path, ok := SocketPath(g.Listen)
	if !ok {
		v.address("listen", g.Listen)
		if g.SocketMode != 0 || g.SocketGroup != "" {
			v.bad("listen", "%s has neither socket_mode nor socket_group; unix:PATH has", g.Listen)
		}
		return
	}
	switch {
	case g.Protocol != "rest":
		v.bad("listen", "protocol %q listens on addresses alone; rest can listen on a Unix socket", g.Protocol)
	case !filepath.IsAbs(path) || filepath.Clean(path) != path:
		v.bad("listen", "%q is not an absolute path such as unix:/run/ogw/rest.sock", g.Listen)
	case len(path) > maxSocketPath:
		v.bad("listen", "a path of %d bytes; clients can name %d", len(path), maxSocketPath)
	}
	if _, err := g.SocketGID(); err != nil {
		v.bad("socket_group", "%v", err)
	}
}

// Open reports whether nobody authenticates: the kernel says who the caller is.
func (g *Gateway) Open() bool {
	return g.Protocol == "rest" && len(g.Tokens) == 0 && !g.Users
}

// SocketGID is the group of the socket, -1 for that of the process.
func (g *Gateway) SocketGID() (int, error) {
	if g.SocketGroup == "" {
		return -1, nil
	}
	if n, err := strconv.ParseUint(g.SocketGroup, 10, 31); err == nil {
		return int(n), nil
	}
	group, err := user.LookupGroup(g.SocketGroup)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(group.Gid)
}
