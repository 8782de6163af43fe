package config

import (
	"path/filepath"
	"time"
)

// The engines.
const (
	EngineEmbedded = "embedded"
	EngineShared   = "shared"
)

// How many gateways use a shared store at a time.
const (
	OneGateway   = "one"
	ManyGateways = "many"
)

// NoPeers is the peer_listen of a gateway that tells the others nothing.
const NoPeers = "off"

// defaultStore is the store of who needs one.
const defaultStore = "ogw"

// Config is everything that can be set. Values of keys with a path tag are names of
// files: Load makes them absolute, since a process in the background leaves its
// working folder and opens some of them again.
type Config struct {
	Cluster  Cluster   `toml:"cluster"`
	Admin    Admin     `toml:"admin"`
	Log      Log       `toml:"log"`
	Audit    Audit     `toml:"audit"`
	Server   Server    `toml:"server"`
	Gateways []Gateway `toml:"gateway"`

	// File that was read, "" for none.
	File string `toml:"-"`
	// given are the keys that somebody set; see Given.
	given map[string]bool
	// lines is where the keys stand in File, as place has them, but for those that
	// something else overrides; unknown are the errors of keys there that do not exist.
	lines   map[string]int
	unknown []error
}

// Cluster is where everything is stored.
type Cluster struct {
	Engine string `toml:"engine" doc:"what stores: \"embedded\", or \"shared\": servers of others"`
	Dir    string `toml:"dir" path:"true" doc:"data folder; of a shared store, what is not in it: socket, audit log, mounts"`
	// Those of a shared store; see shared.go.
	Store            string `toml:"store" doc:"name of a shared store, among others of the same servers"`
	Gateways         string `toml:"gateways" doc:"processes that use a shared store at a time: \"one\" or \"many\"; all say the same"`
	PeerListen       string `toml:"peer_listen" doc:"where the other gateways connect, HOST:PORT; \"\" for a free port of the address that reaches the metadata, \"off\" for none"`
	PeerAddress      string `toml:"peer_address" doc:"HOST:PORT that they use for it, if that is another one"`
	Metadata         string `toml:"metadata" doc:"etcd://HOST:PORT,HOST:PORT (etcds:// for TLS) or postgres://USER@HOST:PORT/DATABASE"`
	MetadataPassword string `toml:"metadata_password" secret:"true" doc:"password of the user in metadata"`
	MetadataCA       string `toml:"metadata_ca" path:"true" doc:"etcds: file with the certificates that vouch for it; \"\" for the system's"`
	MetadataCert     string `toml:"metadata_cert" path:"true" doc:"etcds: file with the client's certificate chain"`
	MetadataKey      string `toml:"metadata_key" path:"true" doc:"etcds: file with its key"`
	Objects          string `toml:"objects" doc:"what holds the blobs: a bucket of an S3 endpoint, https://HOST/BUCKET, or a pool of a Ceph cluster, rados://USER@POOL"`
	ObjectsRegion    string `toml:"objects_region" doc:"region that requests are signed for; \"\" asks the endpoint"`
	ObjectsKey       string `toml:"objects_key" doc:"access key; \"\" for what AWS tools take: environment, shared file, role of the machine"`
	ObjectsSecret    string `toml:"objects_secret" secret:"true" doc:"its secret"`
	ObjectsCA        string `toml:"objects_ca" path:"true" doc:"file with the certificates that vouch for the endpoint; \"\" for the system's"`
	ObjectsConf      string `toml:"objects_conf" path:"true" doc:"rados: the cluster's ceph.conf; \"\" for where Ceph looks"`
	ObjectsKeyring   string `toml:"objects_keyring" path:"true" doc:"rados: file with the user's key; \"\" for where Ceph looks"`
	// KeyFile holds keys of package seal. The environment may hold them in
	// its place (OGW_CLUSTER_KEY), this file may not: it is no secret.
	KeyFile string `toml:"key_file" path:"true" doc:"file with the keys that seal secrets in the store, outside of the data folder; \"\" leaves them in clear"`
	// NetworkFS: see local.Options.
	NetworkFS bool `toml:"network_fs" doc:"let the data folder be on NFS, SMB, AFS, Coda or Lustre"`
	Memory    Size `toml:"memory" doc:"memory for all of it, which divides what is not set by itself; 0: what the machine or control group has"`
	Cache     Size `toml:"cache" doc:"memory for metadata blocks; of a shared store, for what was read of its blobs"`
	ReadCache Size `toml:"read_cache" doc:"disk in the data folder for what was read of a shared store's blobs; 0 for none"`
	Inline    Size `toml:"inline" doc:"contents up to this are kept in the metadata"`
	Dirty     Size `toml:"dirty" doc:"memory for writes of NFS and FUSE that are not stored yet"`
	// Durability of what has none of its own; see vfs.Durability.
	Durability string `toml:"durability" doc:"sync: changes are durable when acknowledged; async: within a second"`
	Scrub      Size   `toml:"scrub" doc:"bytes per second that are read again in the background to verify them; 0 for none"`
	NoAtime    bool   `toml:"noatime" doc:"reads do not update access times"`
	// FileMode and DirMode are of what S3 and REST make.
	FileMode Mode `toml:"file_mode" doc:"permissions of files that S3 and REST make"`
	DirMode  Mode `toml:"dir_mode" doc:"permissions of directories that S3 and REST make"`
}

// Admin is the operator's API on TCP; the socket in the data folder is
// always there.
type Admin struct {
	Listen string `toml:"listen" doc:"TCP address of the admin API and /metrics; \"\" for the socket alone"`
	Token  string `toml:"token" secret:"true" doc:"bearer token for that address, and for --admin"`
	// TLSCert and TLSKey serve that address over TLS.
	TLSCert string `toml:"tls_cert" path:"true" doc:"file with the certificate chain"`
	TLSKey  string `toml:"tls_key" path:"true" doc:"file with its key"`
	// CA and Pin are for --admin: whom to take for the server.
	CA  string `toml:"ca" path:"true" doc:"file with the certificates that vouch for the server of --admin; \"\" for the system's"`
	Pin string `toml:"pin" doc:"sha256//BASE64 of its public key, instead of any authority"`
	// Insecure sends the token in clear.
	Insecure bool `toml:"insecure" doc:"let the token go over networks in clear: listen without TLS, --admin http://"`
}

// Log says what is logged, to standard error.
type Log struct {
	Level  string `toml:"level" doc:"debug, info, warn or error"`
	Format string `toml:"format" doc:"text or json"`
	Access bool   `toml:"access" doc:"one line for every request"`
}

// Audit says what is kept of who did what, and where.
type Audit struct {
	Admin  bool   `toml:"admin" doc:"changes of users, keys, buckets, exports, ACLs, locks, mounts and configuration"`
	Access bool   `toml:"access" doc:"refusals, bounded for each client"`
	Data   bool   `toml:"data" doc:"every operation on data"`
	File   string `toml:"file" path:"true" doc:"file that lines are appended to; \"\" for audit.log in the data folder"`
	Syslog string `toml:"syslog" doc:"a syslog server instead: local, unix:///PATH, udp://HOST:PORT or tcp://HOST:PORT"`
	Rotate Size   `toml:"rotate" doc:"size from which a new file is begun"`
	Keep   int    `toml:"keep" doc:"how many of the old ones stay"`
}

// Server are the limits of the process.
type Server struct {
	Connections int      `toml:"connections" doc:"open connections of each gateway"`
	Drain       Duration `toml:"drain" doc:"how long requests may go on when stopping"`
}

// Gateway is one listener that speaks one protocol. Keys with a for tag
// belong to these protocols alone.
type Gateway struct {
	Protocol string `toml:"protocol" doc:"s3, rest, nfs or embed"`
	Name     string `toml:"name" doc:"in logs and metrics; the protocol by default"`
	Listen   string `toml:"listen" for:"s3 rest nfs" doc:"address and port; for rest also unix:PATH"`
	// Moves reports whether nobody configured the gateway or its address: when the port
	// is taken, it may take another.
	Moves bool `toml:"-"`
	// SocketMode and SocketGroup are of the file of listen = "unix:PATH".
	SocketMode  Mode   `toml:"socket_mode" for:"rest" doc:"permissions of a Unix socket; \"0666\" by default: who connects is known"`
	SocketGroup string `toml:"socket_group" for:"rest" doc:"group of a Unix socket, by name or number"`

	TLSCert string `toml:"tls_cert" path:"true" for:"s3 rest" doc:"file with the certificate chain"`
	TLSKey  string `toml:"tls_key" path:"true" for:"s3 rest" doc:"file with its key"`

	TrustedProxies []string `toml:"trusted_proxies" for:"s3 rest" doc:"networks (CIDR) or addresses whose X-Forwarded-For counts"`
	ProxyProtocol  bool     `toml:"proxy_protocol" for:"s3 rest" doc:"connections of trusted_proxies begin with a PROXY header, which counts in its place"`

	Region       string   `toml:"region" for:"s3" doc:"region that signatures must name; \"\" takes any"`
	Domains      []string `toml:"domains" for:"s3" doc:"service domains: bucket.DOMAIN is a bucket"`
	BareHosts    bool     `toml:"bare_hosts" for:"s3" doc:"every other host name is a bucket; so with domains in any case"`
	V2Signatures V2       `toml:"v2_signatures" for:"s3" doc:"where Signature Version 2 is accepted: urls (presigned URLs and forms), all or none"`
	MaxRequests  int      `toml:"max_requests" for:"s3 rest" doc:"requests in flight, a client's share is half of what is free; others get 503"`

	ActiveContent bool `toml:"active_content" for:"rest" doc:"let browsers show stored HTML and run its scripts on this origin"`

	Tokens    []string `toml:"tokens" secret:"true" for:"rest" doc:"bearer tokens that may do everything"`
	Users     bool     `toml:"users" for:"rest" doc:"admit users with basic credentials"`
	Hosts     []string `toml:"hosts" for:"rest" doc:"host names besides loopback, where nobody must authenticate"`
	Origins   []string `toml:"cors_origins" for:"rest" doc:"origins whose pages may use the gateway; \"*\" for all, where it has tokens and no users"`
	MaxObject Size     `toml:"max_object" for:"s3 rest" doc:"largest body"`
	UID       *uint32  `toml:"uid" for:"rest" doc:"owner of what tokens and open access write"`
	GID       *uint32  `toml:"gid" for:"rest" doc:"its group"`

	Portmap string   `toml:"portmap" for:"nfs" doc:"auto, on or off: register with this machine's rpcbind; serve: be the portmapper"`
	Grace   Duration `toml:"grace" for:"nfs" doc:"after a restart, how long clients may take back their locks"`

	Insecure bool `toml:"insecure" for:"nfs" doc:"take calls from client ports of 1024 and above, which any user there may use, for all exports"`

	Exports []Export `toml:"export" for:"nfs" doc:"what can be mounted"`
}

// Export is a subtree that NFS clients may mount. Without any, a gateway on
// loopback exports the root, and others what was added at run time alone.
type Export struct {
	Path     string   `toml:"path" doc:"directory in the namespace, \"/\" or \"/bucket\""`
	Clients  []string `toml:"clients" doc:"networks (CIDR) or addresses that may mount it"`
	ReadOnly bool     `toml:"read_only" doc:"refuse changes"`
	Insecure bool     `toml:"insecure" doc:"take calls from client ports of 1024 and above"`
	Squash   string   `toml:"squash" doc:"root, all or none"`
	Secret   string   `toml:"secret" secret:"true" doc:"must stand behind the path when mounting: host:/path@SECRET"`
	AnonUID  *uint32  `toml:"anon_uid" doc:"who squashed users are"`
	AnonGID  *uint32  `toml:"anon_gid" doc:"their group"`
}

// Addresses of gateways whose listen key is not set.
var defaultListen = map[string]string{
	"s3":   "127.0.0.1:9000",
	"rest": "127.0.0.1:8080",
	"nfs":  "127.0.0.1:2049",
}

// DefaultGrace is what Linux servers allow, too: time for a client to notice
// the restart, and to send all its locks again.
const DefaultGrace = 45 * time.Second

// Default returns the configuration of no file.
func Default() *Config {
	return &Config{
		Cluster: Cluster{
			Engine: EngineEmbedded, Dir: "./ogw-data", Store: defaultStore, Gateways: OneGateway,
			Cache: 128 << 20, Inline: 16 << 10, Dirty: 128 << 20,
			Durability: "sync", Scrub: 8 << 20,
			FileMode: 0o644, DirMode: 0o755,
		},
		Log: Log{Level: "info", Format: "text"},
		// 704 MiB at the most: two million lines.
		Audit: Audit{Admin: true, Access: true, Rotate: 64 << 20, Keep: 10},
		// A connection costs some 10 KiB while idle, and a transfer 256 KiB.
		Server: Server{Connections: 4096, Drain: Duration(30 * time.Second)},
	}
}

// auditName is the file of the audit log in the data folder.
const auditName = "audit.log"

// AuditFile returns the path of the audit log.
func (c *Config) AuditFile() string {
	if c.Audit.File != "" {
		return c.Audit.File
	}
	return filepath.Join(c.Cluster.Dir, auditName)
}
