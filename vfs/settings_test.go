package vfs

import (
	"errors"
	"testing"

	"ogw/cluster/mem"
)

func TestSettings(t *testing.T) {
	fs := openTest(t, mem.New(mem.Options{}))
	own := errors.New("own")
	if v, err := fs.Setting(bg, "s"); v != nil || err != nil {
		t.Error(v, err)
	}
	want(t, fs.UpdateSetting(bg, "s", func(old []byte) ([]byte, error) { return append(old, 'x'), nil }), nil)
	want(t, fs.UpdateSetting(bg, "s", func(old []byte) ([]byte, error) { return append(old, 'y'), nil }), nil)
	wantErr(t, fs.UpdateSetting(bg, "s", func(old []byte) ([]byte, error) { return nil, own }), own)
	if v, err := fs.Setting(bg, "s"); string(v) != "xy" || err != nil {
		t.Error(v, err)
	}
	want(t, fs.UpdateSetting(bg, "s", func(old []byte) ([]byte, error) { return nil, nil }), nil)
	wantErr(t, fs.UpdateSetting(bg, "", nil), ErrInvalid)
	dumpEmpty(t, fs)
}
