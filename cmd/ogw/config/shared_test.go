package config

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseMetadata(t *testing.T) {
	for text, want := range map[string]Metadata{
		"etcd://a:1,[::1]:2":             {Etcd: []string{"a:1", "[::1]:2"}},
		"etcds://u@a:1/":                 {Etcd: []string{"a:1"}, TLS: true, User: "u"},
		"postgres://u@h:5/d?sslmode=off": {PostgreSQL: "postgres://u@h:5/d?sslmode=off"},
	} {
		if got, err := (&Cluster{Metadata: text}).ParseMetadata(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for text, says := range map[string]string{
		"": "neither", "a:1": "neither", "etcd://": "not a member", "etcd://a": "not a member", "etcd://:1": "not a member",
		"etcd://u:p@a:1": "password", "postgres://u:p@h/d": "password", "postgres://u@h/d?password=x": "password", "postgres://h": "not a URL",
	} {
		if _, err := (&Cluster{Metadata: text}).ParseMetadata(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestParseObjects(t *testing.T) {
	for text, want := range map[string]Objects{
		"https://h/bucket":   {Endpoint: "https://h", Bucket: "bucket"},
		"http://h:1/bucket/": {Endpoint: "http://h:1", Bucket: "bucket"},
		"rados://pool":       {Pool: "pool"},
		"rados://u.1@p_2.x/": {Pool: "p_2.x", User: "u.1"},
	} {
		if got, err := (&Cluster{Objects: text}).ParseObjects(); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for text, says := range map[string]string{
		"": "neither", "rados://": "not a pool", "rados://u@": "not a pool", "rados://@p": "not a pool", "rados://a@b@c": "not a pool",
		"rados://p/ns": "not a pool", "rados://p?x=1": "not a pool", "rados://u:key@p": "key in it would be printed",
		"https://u@h/b": "neither", "https://h": "neither", "https://h/a/b": "neither", "ftp://h/b": "neither",
	} {
		if _, err := (&Cluster{Objects: text}).ParseObjects(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestSharedKeys(t *testing.T) {
	const good = "[cluster]\nengine = \"shared\"\nmetadata = \"etcd://a:1\"\nobjects = \"https://h/bucket\"\n"
	pool := strings.Replace(good, "https://h/bucket", "rados://u@pool", 1)
	for text, says := range map[string]string{
		good:                                     "",
		"[cluster]\nmetadata = \"etcd://a:1\"\n": "cluster.metadata: is for cluster.engine",
		"[cluster]\nstore = \"x\"\n":             "cluster.store: is for cluster.engine",
		"[cluster]\nengine = \"shared\"\n":       "cluster.objects",
		good + "store = \"A/B\"\n":               "cluster.store",
		"[cluster]\ngateways = \"many\"\n":       "cluster.gateways: is for cluster.engine",
		good + "gateways = \"two\"\n":            "cluster.gateways",
		good + "gateways = \"many\"\n[[gateway]]\nprotocol = \"s3\"\n[[gateway]]\nprotocol = \"rest\"\n": "",
		good + "gateways = \"many\"\n[[gateway]]\nprotocol = \"nfs\"\n":                                  "",
		good + "gateways = \"many\"\n[[gateway]]\nprotocol = \"embed\"\n":                                "",
		good + "gateways = \"many\"\npeer_listen = \":7480\"\npeer_address = \"h:7480\"\n":               "",
		good + "gateways = \"many\"\npeer_listen = \"off\"\n":                                            "",
		good + "gateways = \"many\"\npeer_listen = \"h\"\n":                                              "cluster.peer_listen",
		good + "gateways = \"many\"\npeer_listen = \"h:99999\"\n":                                        "cluster.peer_listen",
		good + "gateways = \"many\"\npeer_address = \":7480\"\n":                                         "cluster.peer_address",
		good + "gateways = \"many\"\npeer_address = \"h:0\"\n":                                           "cluster.peer_address",
		good + "gateways = \"many\"\npeer_listen = \"off\"\npeer_address = \"h:1\"\n":                    "of no use",
		good + "peer_listen = \":7480\"\n":                                                               "is for cluster.gateways",
		"[cluster]\npeer_listen = \":7480\"\n":                                                           "cluster.peer_listen: is for cluster.engine",
		good + "objects_key = \"k\"\n":                                                                   "objects_secret",
		good + "metadata_ca = \"f\"\n":                                                                   "etcds://",
		good + "metadata_cert = \"f\"\n":                                                                 "belong together",
		strings.Replace(good, "/bucket", "/a/b", 1):                                                      "cluster.objects",
		good + "objects_keyring = \"f\"\n":                                                               "cluster.objects_keyring: is for objects of rados://",
		pool + "objects_conf = \"f\"\nobjects_keyring = \"g\"\n":                                         "",
		pool + "objects_region = \"r\"\n":                                                                "cluster.objects_region: is for objects of https://",
		"[cluster]\nobjects_conf = \"f\"\n":                                                              "cluster.objects_conf: is for cluster.engine",
	} {
		c := Default()
		err := c.parse(text)
		if err == nil {
			c.fillGateways()
			err = c.Validate()
		}
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
