package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// Metadata is where the metadata of a shared store are.
type Metadata struct {
	Etcd       []string // HOST:PORT of members; nil for PostgreSQL
	TLS        bool     // speak TLS to them
	User       string   // of etcd
	PostgreSQL string   // URL without a password
}

// ParseMetadata reads cluster.metadata.
func (c *Cluster) ParseMetadata() (m Metadata, err error) {
	scheme, rest, _ := strings.Cut(c.Metadata, "://")
	switch scheme {
	case "etcd", "etcds":
		m.TLS = scheme == "etcds"
		if user, hosts, ok := strings.Cut(rest, "@"); ok {
			m.User, rest = user, hosts
		}
		if strings.Contains(m.User, ":") {
			return m, errPassword
		}
		m.Etcd = strings.Split(strings.TrimSuffix(rest, "/"), ",")
		for _, host := range m.Etcd {
			if h, port, err := net.SplitHostPort(host); err != nil || h == "" || port == "" {
				return m, fmt.Errorf("%q is not a member of etcd, HOST:PORT", host)
			}
		}
		return m, nil
	case "postgres", "postgresql":
		u, err := url.Parse(c.Metadata)
		if err != nil || u.Host == "" || strings.Trim(u.Path, "/") == "" {
			return m, errors.New("not a URL such as postgres://USER@HOST:5432/DATABASE?sslmode=verify-full")
		}
		if _, has := u.User.Password(); has || u.Query().Has("password") {
			return m, errPassword
		}
		m.PostgreSQL = c.Metadata
		return m, nil
	}
	return m, fmt.Errorf("%q is neither etcd://HOST:PORT,HOST:PORT (etcds:// for TLS) nor postgres://USER@HOST:PORT/DATABASE", c.Metadata)
}

var errPassword = errors.New("a password in it would be printed: set cluster.metadata_password, or OGW_CLUSTER_METADATA_PASSWORD")

// Objects is where the blobs of a shared store are.
type Objects struct {
	Endpoint, Bucket string // of S3; "" for a pool
	Pool, User       string // of Ceph; the user without "client.", "" for Ceph's own default
}

// ParseObjects reads cluster.objects.
func (c *Cluster) ParseObjects() (o Objects, err error) {
	if rest, ok := strings.CutPrefix(c.Objects, "rados://"); ok {
		if user, pool, ok := strings.Cut(rest, "@"); ok {
			o.User, rest = user, pool
			if user == "" {
				rest = ""
			}
		}
		o.Pool = strings.TrimSuffix(rest, "/")
		if strings.Contains(o.User, ":") {
			return Objects{}, errors.New("a key in it would be printed: cluster.objects_keyring names its file")
		}
		if o.Pool == "" || strings.ContainsAny(o.Pool+o.User, "/?@ ") {
			return Objects{}, fmt.Errorf("%q is not a pool of a Ceph cluster, rados://USER@POOL", c.Objects)
		}
		return o, nil
	}
	u, err := url.Parse(c.Objects)
	if err == nil {
		o.Bucket = strings.Trim(u.Path, "/")
	}
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || o.Bucket == "" || strings.Contains(o.Bucket, "/") || u.User != nil || u.RawQuery != "" {
		return Objects{}, fmt.Errorf("%q is neither a bucket, https://HOST/BUCKET, nor a pool of a Ceph cluster, rados://USER@POOL", c.Objects)
	}
	o.Endpoint = u.Scheme + "://" + u.Host
	return o, nil
}

// Place returns what stores, and where, for people.
func (c *Cluster) Place() string {
	m, err := c.ParseMetadata()
	if c.Engine != EngineShared || err != nil {
		return c.Engine
	}
	where := "etcd at " + strings.Join(m.Etcd, ", ")
	if u, err := url.Parse(m.PostgreSQL); err == nil && m.PostgreSQL != "" {
		where = "PostgreSQL at " + u.Host + ", database " + strings.Trim(u.Path, "/")
	}
	return c.Engine + ": metadata in " + where + "; blobs in " + c.Objects + "; store " + c.Store
}
