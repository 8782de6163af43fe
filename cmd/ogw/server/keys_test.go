package server

import (
	"bytes"
	"encoding/base64"
	"log/slog"
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
