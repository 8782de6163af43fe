package config

import (
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
)

// minReadCache is what one reader in order fills in no time.
const minReadCache = 64 << 20

// maxStoreName is that of PostgreSQL's identifiers, whose store it names, too.
const maxStoreName = 63

func (c *Cluster) validateEngine(v *validator) {
	switch c.Engine {
	case EngineEmbedded:
		c.validateEmbedded(v)
	case EngineShared:
		c.validateShared(v)
	default:
		v.bad("cluster.engine", "unknown engine %q; there is %q and %q", c.Engine, EngineEmbedded, EngineShared)
	}
}

// validateEmbedded refuses what belongs to the shared engine alone.
func (c *Cluster) validateEmbedded(v *validator) {
	store, gateways := c.Store, c.Gateways
	if store == defaultStore {
		store = "" // nobody set it
	}
	if gateways == OneGateway {
		gateways = ""
	}
	for _, x := range []struct{ key, value string }{
		{"store", store}, {"gateways", gateways}, {"peer_listen", c.PeerListen}, {"peer_address", c.PeerAddress},
		{"metadata", c.Metadata}, {"metadata_password", c.MetadataPassword}, {"metadata_ca", c.MetadataCA},
		{"metadata_cert", c.MetadataCert}, {"metadata_key", c.MetadataKey},
		{"objects", c.Objects}, {"objects_region", c.ObjectsRegion}, {"objects_key", c.ObjectsKey},
		{"objects_secret", c.ObjectsSecret}, {"objects_ca", c.ObjectsCA},
		{"objects_conf", c.ObjectsConf}, {"objects_keyring", c.ObjectsKeyring},
	} {
		if x.value != "" {
			v.bad("cluster."+x.key, "is for cluster.engine = %q", EngineShared)
		}
	}
	if c.ReadCache != 0 {
		v.bad("cluster.read_cache", "is for cluster.engine = %q", EngineShared)
	}
}

func (c *Cluster) validateShared(v *validator) {
	m, err := c.ParseMetadata()
	if err != nil {
		v.bad("cluster.metadata", "%v", err)
	} else if !m.TLS && (c.MetadataCA != "" || c.MetadataCert != "") {
		v.bad("cluster.metadata", "metadata_ca and metadata_cert are for etcds://; PostgreSQL takes sslrootcert and sslcert in its URL")
	}
	if (c.MetadataCert == "") != (c.MetadataKey == "") {
		v.bad("cluster.metadata_cert", "certificate and key (metadata_key) belong together")
	}
	c.validateObjects(v)
	if c.ReadCache != 0 && c.ReadCache < minReadCache {
		v.bad("cluster.read_cache", "%s is less than %s", c.ReadCache, Size(minReadCache))
	}
	if c.Gateways != OneGateway && c.Gateways != ManyGateways {
		v.bad("cluster.gateways", "unknown %q; there is %q and %q", c.Gateways, OneGateway, ManyGateways)
	}
	c.validatePeers(v)
	if c.Store == "" || len(c.Store) > maxStoreName || strings.ContainsFunc(c.Store, func(r rune) bool { return !slices.Contains(storeRunes, r) }) {
		v.bad("cluster.store", "%q is not a name of up to %d lower-case letters, digits and hyphens", c.Store, maxStoreName)
	}
}

func (c *Cluster) validatePeers(v *validator) {
	for key, value := range map[string]string{"peer_listen": c.PeerListen, "peer_address": c.PeerAddress} {
		if value != "" && c.Gateways == OneGateway {
			v.bad("cluster."+key, "is for cluster.gateways = %q", ManyGateways)
		}
	}
	if _, _, err := hostPort(c.PeerListen); c.PeerListen != "" && c.PeerListen != NoPeers && err != nil {
		v.bad("cluster.peer_listen", "%q is neither HOST:PORT nor %q", c.PeerListen, NoPeers)
	}
	if c.PeerAddress == "" {
		return
	}
	if host, port, err := hostPort(c.PeerAddress); err != nil || host == "" || port == 0 {
		v.bad("cluster.peer_address", "%q is not HOST:PORT", c.PeerAddress)
	}
	if c.PeerListen == NoPeers {
		v.bad("cluster.peer_address", "is of no use with peer_listen = %q", NoPeers)
	}
}

func hostPort(address string) (host string, port uint16, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(text, 10, 16)
	return host, uint16(n), err
}

// validateObjects refuses what belongs to another kind of objects.
func (c *Cluster) validateObjects(v *validator) {
	o, err := c.ParseObjects()
	if err != nil {
		v.bad("cluster.objects", "%v", err)
		return
	}
	of, others := "https:// and http://", map[string]string{
		"objects_region": c.ObjectsRegion, "objects_key": c.ObjectsKey, "objects_secret": c.ObjectsSecret, "objects_ca": c.ObjectsCA,
	}
	if o.Pool == "" {
		of, others = "rados://", map[string]string{"objects_conf": c.ObjectsConf, "objects_keyring": c.ObjectsKeyring}
	}
	for _, key := range slices.Sorted(maps.Keys(others)) {
		if others[key] != "" {
			v.bad("cluster."+key, "is for objects of %s", of)
		}
	}
	if o.Pool == "" && (c.ObjectsKey == "") != (c.ObjectsSecret == "") {
		v.bad("cluster.objects_key", "key and secret (objects_secret) belong together")
	}
}

var storeRunes = []rune("abcdefghijklmnopqrstuvwxyz0123456789-")
