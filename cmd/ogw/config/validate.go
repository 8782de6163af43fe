package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"ogw/cmd/ogw/audit"
	"ogw/httpapi/admin"
	"ogw/nfsserver"
)

// Bounds of values, each with the reason in its message or here.
const (
	minMemory      = 128 << 20 // below it, what no budget bounds is most of it
	minCache       = 1 << 20   // smaller thrashes
	maxInline      = 64 << 10  // larger values make the metadata store slow
	minDirty       = 8 << 20   // two writers with a chunk each
	maxDrain       = time.Hour
	maxConnections = 1 << 20
	minToken       = 16 // characters; shorter ones can be guessed
	maxGateways    = 64
	minRotate      = 64 << 10        // smaller, and the files would hold less than a minute of refusals
	maxKeep        = 10000           // each is renamed when a new file is begun
	minGrace       = time.Second     // clients cannot even be told in less
	maxGrace       = 5 * time.Minute // nobody else gets a lock in that time
)

// Validate checks every value and returns all that is wrong, one line each.
func (c *Config) Validate() error {
	v := &validator{file: c.File, lines: c.lines}
	c.validateCluster(v)
	c.validateSections(v)
	if len(c.Gateways) > maxGateways {
		v.bad("gateway", "%d of them, at most %d", len(c.Gateways), maxGateways)
	}
	names, listens := map[string]bool{}, map[string]string{}
	for i := range c.Gateways {
		g := &c.Gateways[i]
		v.prefix = fmt.Sprintf("gateway[%d].", i)
		g.validate(v)
		if names[g.Name] {
			v.bad("name", "%q is the name of another gateway", g.Name)
		}
		names[g.Name] = true
		if other := listens[g.Listen]; other != "" && !strings.HasSuffix(g.Listen, ":0") && g.Listen != "" {
			v.bad("listen", "%s is the address of gateway %s", g.Listen, other)
		}
		listens[g.Listen] = g.Name
	}
	return errors.Join(v.errs...)
}

func (c *Config) validateCluster(v *validator) {
	c.Cluster.validateEngine(v)
	if c.Cluster.Dir == "" {
		v.bad("cluster.dir", "a data folder is needed")
	}
	if c.Cluster.Cache < minCache {
		v.bad("cluster.cache", "%s is less than %s", c.Cluster.Cache, Size(minCache))
	}
	if c.Cluster.Memory != 0 && c.Cluster.Memory < minMemory {
		v.bad("cluster.memory", "%s is less than %s", c.Cluster.Memory, Size(minMemory))
	}
	if c.Cluster.Inline < 1 || c.Cluster.Inline > maxInline {
		v.bad("cluster.inline", "%s is not within 1 and %s", c.Cluster.Inline, Size(maxInline))
	}
	if d := c.Cluster.Durability; d != "sync" && d != "async" {
		v.bad("cluster.durability", "unknown %q; there is \"sync\" and \"async\"", d)
	}
	if c.Cluster.Dirty < minDirty {
		v.bad("cluster.dirty", "%s is less than %s", c.Cluster.Dirty, Size(minDirty))
	}
	if c.Cluster.FileMode == 0 {
		v.bad("cluster.file_mode", "nobody could read the files")
	}
	if c.Cluster.DirMode == 0 {
		v.bad("cluster.dir_mode", "nobody could enter the directories")
	}
}

func (c *Config) validateSections(v *validator) {
	if _, err := c.Log.SlogLevel(); err != nil {
		v.bad("log.level", "%v", err)
	}
	if c.Log.Format != "text" && c.Log.Format != "json" {
		v.bad("log.format", "%q is neither \"text\" nor \"json\"", c.Log.Format)
	}
	if c.Server.Connections < 1 || c.Server.Connections > maxConnections {
		v.bad("server.connections", "%d is not within 1 and %d", c.Server.Connections, maxConnections)
	}
	if c.Server.Drain < 0 || c.Server.Drain > Duration(maxDrain) {
		v.bad("server.drain", "%s is not within 0 and %s", c.Server.Drain, maxDrain)
	}
	c.Audit.validate(v)
	c.Admin.validate(v)
}

func (a *Admin) validate(v *validator) {
	v.certificate("admin.", a.TLSCert, a.TLSKey)
	if a.Listen != "" {
		v.address("admin.listen", a.Listen)
		v.token("admin.token", a.Token)
		if a.TLSCert == "" && !Loopback(a.Listen) && !a.Insecure {
			v.bad("admin.listen", "%s can be reached from elsewhere, and the token would cross the network in clear: "+
				"set admin.tls_cert and admin.tls_key, or listen on 127.0.0.1 (admin.insecure = true accepts it)", a.Listen)
		}
	} else if a.Token != "" { // for --admin, the API of another machine
		v.token("admin.token", a.Token)
	}
	if a.Pin != "" {
		if _, err := admin.ParsePin(a.Pin); err != nil {
			v.bad("admin.pin", "%v", err)
		}
	}
}

func (a *Audit) validate(v *validator) {
	if a.Syslog != "" {
		if _, _, err := audit.ParseSyslog(a.Syslog); err != nil {
			v.bad("audit.syslog", "%v", err)
		}
		if a.File != "" {
			v.bad("audit.file", "audit.syslog is set: lines go to one place")
		}
	}
	if a.Rotate < minRotate {
		v.bad("audit.rotate", "%s is less than %s", a.Rotate, Size(minRotate))
	}
	if a.Keep < 1 || a.Keep > maxKeep {
		v.bad("audit.keep", "%d is not within 1 and %d", a.Keep, maxKeep)
	}
}

// SlogLevel returns the level as slog has it.
func (l Log) SlogLevel() (slog.Level, error) {
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		if strings.EqualFold(l.Level, level.String()) {
			return level, nil
		}
	}
	return 0, fmt.Errorf("%q is none of debug, info, warn, error", l.Level)
}

func (v *validator) token(key, token string) {
	if len(token) < minToken {
		v.bad(key, "a token of at least %d characters is needed", minToken)
	}
	if strings.ContainsAny(token, " \t\r\n") {
		v.bad(key, "a token has no spaces")
	}
}

// isAddress reports whether s is a host, or none, and a port.
func isAddress(s string) bool {
	_, _, err := net.SplitHostPort(s)
	return err == nil
}

func (v *validator) address(key, s string) {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		v.bad(key, "%q is not an address such as 127.0.0.1:9000 or :9000", s)
		return
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		v.bad(key, "%q: the port is not within 0 and 65535", s)
	}
}

func (g *Gateway) validate(v *validator) {
	if !slices.Contains([]string{"s3", "rest", "nfs", "embed"}, g.Protocol) {
		v.bad("protocol", "%q is none of s3, rest, nfs, embed", g.Protocol)
		return
	}
	g.validateKeys(v)
	if g.Protocol == "embed" {
		return
	}
	g.validateListen(v)
	v.certificate("", g.TLSCert, g.TLSKey)
	for _, s := range g.TrustedProxies {
		if _, err := ParseNetwork(s); err != nil {
			v.bad("trusted_proxies", "%v", err)
		}
	}
	if g.ProxyProtocol && len(g.TrustedProxies) == 0 {
		v.bad("proxy_protocol", "name the proxies in trusted_proxies")
	}
	if g.MaxRequests < 0 {
		v.bad("max_requests", "%d is negative", g.MaxRequests)
	}
	switch g.Protocol {
	case "s3":
		g.validateS3(v)
	case "rest":
		g.validateREST(v)
	case "nfs":
		g.validateNFS(v)
	}
}

// validateKeys refuses keys of other protocols.
func (g *Gateway) validateKeys(v *validator) {
	value := reflect.ValueOf(*g)
	for f := range fields(value.Type()) {
		protocols := strings.Fields(f.Tag.Get("for"))
		if len(protocols) > 0 && !slices.Contains(protocols, g.Protocol) && !value.FieldByIndex(f.Index).IsZero() {
			v.bad(f.Tag.Get("toml"), "protocol %q has no such key (only %s)", g.Protocol, strings.Join(protocols, " and "))
		}
	}
}

// certificate checks a pair of files; both may be "".
func (v *validator) certificate(prefix, cert, key string) {
	switch {
	case cert == "" && key == "":
	case key == "":
		v.bad(prefix+"tls_key", "tls_cert needs its key")
	case cert == "":
		v.bad(prefix+"tls_cert", "tls_key needs its certificate")
	default:
		if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
			v.bad(prefix+"tls_cert", "%v", err)
		}
	}
}

func (g *Gateway) validateS3(v *validator) {
	for _, d := range g.Domains {
		if d == "" || strings.ContainsAny(d, "/: *") || strings.HasPrefix(d, ".") {
			v.bad("domains", "%q is not a domain such as s3.example.com", d)
		}
	}
}

func (g *Gateway) validateREST(v *validator) {
	for _, t := range g.Tokens {
		v.token("tokens", t)
	}
	if len(g.Tokens) == 0 && !g.Users && isAddress(g.Listen) && !Loopback(g.Listen) {
		v.bad("listen", "%s can be reached from elsewhere, and anybody could change everything: "+
			"set tokens or users, or listen on 127.0.0.1", g.Listen)
	}
	if g.Open() && len(g.TrustedProxies) > 0 {
		v.bad("trusted_proxies", "without tokens and users the proxy itself is who asks, not its clients")
	}
	for _, o := range g.Origins {
		switch {
		case o != "*" && http.NewCrossOriginProtection().AddTrustedOrigin(o) != nil:
			v.bad("cors_origins", "%q is no origin such as \"https://app.example.com\"", o)
		case o == "*" && (len(g.Tokens) == 0 || g.Users):
			v.bad("cors_origins", "\"*\" is for gateways with tokens and without users: browsers know names and passwords by themselves")
		}
	}
	if len(g.Hosts) > 0 && (len(g.Tokens) > 0 || g.Users) {
		v.bad("hosts", "it is for gateways without tokens and users")
	}
}

func (g *Gateway) validateNFS(v *validator) {
	if !slices.Contains([]string{"auto", "on", "off", "serve"}, g.Portmap) {
		v.bad("portmap", "%q is none of auto, on, off, serve", g.Portmap)
	}
	if g.Grace < Duration(minGrace) || g.Grace > Duration(maxGrace) {
		v.bad("grace", "%s is not within %s and %s", g.Grace, minGrace, maxGrace)
	}
	for i, e := range g.Exports {
		key := fmt.Sprintf("export[%d].", i)
		if !strings.HasPrefix(e.Path, "/") {
			v.bad(key+"path", "%q does not begin with /", e.Path)
		}
		if !slices.Contains([]string{"", "root", "all", "none"}, e.Squash) {
			v.bad(key+"squash", "%q is none of root, all, none", e.Squash)
		}
		if len(e.Clients) == 0 && !Loopback(g.Listen) {
			v.bad(key+"clients", "name the networks that may mount it (\"0.0.0.0/0\" for all)")
		}
		if n := len(e.Secret); n > 0 && n < nfsserver.MinSecret {
			v.bad(key+"secret", "it has %d characters, and who may reach the gateway can guess it: at least %d are needed "+
				"(clients mount again with the new one)", n, nfsserver.MinSecret)
		}
		for _, s := range e.Clients {
			if _, err := ParseNetwork(s); err != nil {
				v.bad(key+"clients", "%v", err)
			}
		}
	}
}

// ParseNetwork reads a network or a single address.
func ParseNetwork(s string) (netip.Prefix, error) {
	if p, err := netip.ParsePrefix(s); err == nil {
		return p.Masked(), nil
	}
	if a, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	return netip.Prefix{}, fmt.Errorf("%q is neither a network such as 10.0.0.0/8 nor an address", s)
}

// Loopback reports whether an address can be reached from this machine only.
func Loopback(listen string) bool {
	if _, ok := SocketPath(listen); ok {
		return true
	}
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
