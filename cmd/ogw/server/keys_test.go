package server

import (
	"bytes"
	"encoding/base64"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ogw/cmd/ogw/config"
	"ogw/vfs"
	"ogw/vfs/seal"
)

func TestClusterKeys(t *testing.T) {
	key := func(b byte) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, seal.KeyBytes)) }
	dir := t.TempDir()
	c := config.Default()
	c.Cluster.Dir = filepath.Join(dir, "data")
	if k, err := Keys(c); k != nil || err != nil {
		t.Error("none configured:", k, err)
	}
	t.Setenv(KeyVariable, key(1)+","+key(2))
	if k, err := Keys(c); err != nil || len(k.IDs()) != 2 {
		t.Error(k.IDs(), err)
	}
	c.Cluster.KeyFile = filepath.Join(dir, "key")
	if err := os.WriteFile(c.Cluster.KeyFile, []byte(key(3)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Keys(c); err == nil || !strings.Contains(err.Error(), "not from both") {
		t.Error(err)
	}
	forgetKeys()
	if k, err := Keys(c); err != nil || len(k.IDs()) != 1 {
		t.Error(k.IDs(), err)
	}
	c.Cluster.KeyFile = ""
	t.Setenv(KeyVariable, "hunter2")
	if _, err := Keys(c); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}

// TestFailedFirstStart: a start that fails makes no root whose sealed key nobody saw;
// the next one is the first.
func TestFailedFirstStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	log, dir := slog.New(slog.DiscardHandler), filepath.Join(t.TempDir(), "data")
	start := func(listen, admin string) (*Server, error) {
		t.Setenv(KeyVariable, base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, seal.KeyBytes)))
		cfg, err := config.Load(config.Sources{
			Set:    []string{"cluster.dir=" + dir, "admin.listen=" + admin, "admin.token=a-long-admin-token"},
			Listen: map[string]string{"s3": listen, "rest": "off", "nfs": "off"},
		})
		if err != nil {
			t.Fatal(err)
		}
		return Open(t.Context(), cfg, Options{Log: log, Access: log})
	}
	for _, at := range [][2]string{{taken.Addr().String(), "127.0.0.1:0"}, {"127.0.0.1:0", taken.Addr().String()}} {
		if s, err := start(at[0], at[1]); err == nil {
			t.Fatal(errors.Join(errors.New("a taken port is listened at"), s.Close()))
		}
	}
	s, err := start("127.0.0.1:0", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	file, key := s.RootKey()
	if file != "" || key == nil || key.Secret == "" {
		t.Errorf("the start after it made %v, kept in %q", key, file)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestTellSealing(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	if tellSealing(vfs.SealState{Keys: []string{"aa"}}, log); out.Len() != 0 {
		t.Errorf("said %s", &out)
	}
	s := vfs.SealState{Missing: []string{"bb"}}
	for i := range maxToldUsers + 5 {
		name := "user" + strconv.Itoa(i)
		s.Locked = append(s.Locked, vfs.LockedKey{User: name, Key: "AK1" + name}, vfs.LockedKey{User: name, Key: "AK2" + name})
	}
	tellSealing(s, log)
	for _, want := range []string{"ogw user key add", "bb", "access_keys=50", "user0,user1,", "user19,…"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in %s", want, &out)
		}
	}
}
