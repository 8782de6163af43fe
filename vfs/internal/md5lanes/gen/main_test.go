package main

import (
	"bytes"
	"os"
	"testing"
)

func TestAssemblyIsCurrent(t *testing.T) {
	got, err := os.ReadFile("../blocks_amd64.s")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, generate()) {
		t.Error("blocks_amd64.s is not what gen makes: run go generate")
	}
}
