package vfs

import (
	"encoding/hex"
	"testing"
)

// Known answers: FIPS 180, RFC 1321 and the specification of xxHash.
func TestChecksumAlgorithms(t *testing.T) {
	for alg, want := range map[ChecksumAlgorithm]string{
		ChecksumCRC32:     "352441c2",
		ChecksumCRC32C:    "364b3fb7",
		ChecksumSHA1:      "a9993e364706816aba3e25717850c26c9cd0d89d",
		ChecksumSHA256:    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
		ChecksumSHA512:    "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
		ChecksumMD5:       "900150983cd24fb0d6963f7d28e17f72",
		ChecksumXXHASH64:  "44bc2cf5ad770999",
		ChecksumXXHASH3:   "78af5f94892f3950",
		ChecksumXXHASH128: "06b05ab6733a618578af5f94892f3950",
	} {
		h, err := alg.New()
		if err != nil {
			t.Fatal(err)
		}
		h.Write([]byte("a"))
		h.Write([]byte("bc"))
		if got := hex.EncodeToString(h.Sum(nil)); got != want || h.Size() != alg.Size() || len(got) != 2*alg.Size() {
			t.Errorf("%s: %s, want %s (%d bytes)", alg, got, want, alg.Size())
		}
	}
	if _, err := ChecksumAlgorithm("CRC8").New(); err == nil {
		t.Error("CRC8 is known")
	}
}
